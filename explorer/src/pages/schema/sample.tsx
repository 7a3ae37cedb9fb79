/** Some rows of a type. */
import type { EdgeInfo, NodeInfo, Row } from "../../api";
import { edgeWord } from "../../canvas/source";
import { useHere } from "../../context";
import { useAsync } from "../../hooks";
import { href } from "../../router";
import { Button, Empty, Failure, Panel, Progress } from "../../ui/basics";
import { RowsTable } from "../../ui/table";
import { sampleQuery } from "../query/example";

const SAMPLE_ROWS = 20;

export function SamplePanel({ info, onClose }: { info: NodeInfo | EdgeInfo; onClose: () => void }) {
  const { client, point } = useHere();
  const columns = [
    ...(info.kind === "edge" ? ["from", "to"] : ["id"]),
    ...info.properties.filter((p) => p.type !== "Blob").map((p) => p.name),
  ];
  const sample = useAsync(
    async (signal) => {
      const { rows } = await client.query(point, { query: sampleText(info, columns) }, signal);
      return rows.map((row): Row => Object.fromEntries(columns.map((name, i) => [name, row[`c${i}`] ?? null])));
    },
    [client, point, info],
  );
  return (
    <Panel
      title={`Sample of ${info.name}`}
      actions={
        <>
          {info.kind === "node" && (
            <a
              class="button button-small"
              href={href({ page: "query", params: { q: sampleQuery(info), run: "1", view: "graph" } })}
            >
              Open as a query
            </a>
          )}
          <Button small kind="quiet" aria-label="Close the sample" onClick={onClose}>
            ✕
          </Button>
        </>
      }
    >
      {sample.error && (
        <div class="panel-body">
          <Failure error={sample.error} retry={sample.reload} />
        </div>
      )}
      {!sample.value && !sample.error && (
        <div class="panel-body">
          <Progress label="Reading" />
        </div>
      )}
      {sample.value?.length === 0 && <Empty>There are none on this branch.</Empty>}
      {sample.value && sample.value.length > 0 && (
        <RowsTable
          label={`Sample of ${info.name}`}
          columns={columns}
          rows={sample.value}
          types={Object.fromEntries(info.properties.map((p) => [p.name, `${p.type}${p.nullable ? "?" : ""}`]))}
        />
      )}
    </Panel>
  );
}

function sampleText(info: NodeInfo | EdgeInfo, columns: readonly string[]): string {
  const [pattern, variable] =
    info.kind === "edge" ? [`$a: ${info.from} $a $e:${edgeWord(info.name)} $b`, "$e"] : [`$n: ${info.name}`, "$n"];
  const wanted = columns.map((name, i) => `${variable}.${name} as c${i}`).join(", ");
  return `query sample() { match { ${pattern} } return { ${wanted} } limit ${SAMPLE_ROWS} }`;
}
