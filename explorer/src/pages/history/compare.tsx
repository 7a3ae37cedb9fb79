/** What turns one point into another: counts by type, then rows with their changed cells, and a picture of both. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Diff, DiffRow, Json, Op } from "../../api";
import { lookOf } from "../../canvas/look";
import { PictureView } from "../../canvas/picture-view";
import { TypeChip } from "../../canvas/type-dot";
import { useHere } from "../../context";
import { count, counted, shortCommit, valueText, visible } from "../../format";
import { useAsync } from "../../hooks";
import { setParams, useRoute } from "../../router";
import { Button, Empty, Failure, Panel, Progress, Tabs } from "../../ui/basics";
import { type Column, Table } from "../../ui/table";
import { overlayOf, SIGNS, withEnds } from "./overlay";

const ROWS_MAX = 2000;
const WORDS: Record<Op, string> = { insert: "added", update: "changed", delete: "removed" };
const ENDS: Record<string, string> = { src: "from", dst: "to" };
const TONES: Record<Op, string> = { insert: "added", update: "changed", delete: "removed" };

interface Props {
  readonly a: string;
  readonly b: string;
  readonly title?: string;
  readonly fromMergeBase?: boolean; // what b did since it parted from a: what a merge brings along
  readonly nothing?: string; // what to say where there is no difference
  readonly onClose?: () => void;
  readonly show?: (rows: readonly DiffRow[]) => ComponentChildren; // rows, where there is more to do than look
}

export function Compare({ a, b, title, fromMergeBase = false, nothing, onClose, show }: Props) {
  const { client } = useHere();
  const { params } = useRoute();
  const diff = useAsync(
    () => client.diff({ a, b, limit: ROWS_MAX, from_merge_base: fromMergeBase }),
    [client, a, b, fromMergeBase],
  );
  const view = params["view"] === "picture" ? "picture" : "rows";
  const tabs = (
    <>
      <Tabs
        label="Show the difference as"
        value={view}
        onChange={(to) => setParams({ view: to === "rows" ? null : to })}
        options={[
          { value: "rows", label: "Rows" },
          { value: "picture", label: "Picture" },
        ]}
      />
      {onClose && (
        <Button kind="quiet" small aria-label="Close the comparison" onClick={onClose}>
          ✕
        </Button>
      )}
    </>
  );
  return (
    <Panel
      title={
        title ?? (
          <>
            From <span class="mono">{shortCommit(a)}</span> to <span class="mono">{shortCommit(b)}</span>
          </>
        )
      }
      actions={tabs}
      class="compare"
    >
      {diff.loading && !diff.value && (
        <div class="panel-body">
          <Progress label="Comparing" />
        </div>
      )}
      {diff.error && (
        <div class="panel-body">
          <Failure error={diff.error} retry={diff.reload} />
        </div>
      )}
      {diff.value && (
        <Difference diff={diff.value} view={view} nothing={nothing ?? "The two points hold the same."} show={show} />
      )}
    </Panel>
  );
}

interface DifferenceProps {
  readonly diff: Diff;
  readonly view: "rows" | "picture";
  readonly nothing: string;
  readonly show: Props["show"];
}

function Difference({ diff, view, nothing, show }: DifferenceProps) {
  const { catalog } = useHere();
  const { params } = useRoute();
  const type = params["type"];
  const op = params["op"] as Op | undefined;
  const rows = useMemo(
    () => diff.rows.filter((row) => (!type || row.type === type) && (!op || row.operation === op)),
    [diff, type, op],
  );
  if (diff.rows.length === 0 && diff.schema.length === 0) return <Empty title="No difference">{nothing}</Empty>;
  return (
    <div class="difference">
      <aside class="difference-types" aria-label="Changes by type">
        <TypeFilter counts={diff.counts} type={type} op={op} />
        {diff.schema.length > 0 && <SchemaSteps steps={diff.schema} />}
      </aside>
      <div class="difference-main">
        {diff.truncated && (
          <p class="muted difference-note">
            The first {count(diff.rows.length)} of {counted(totalOf(diff), "row")} are shown. Choose a type to see
            fewer.
          </p>
        )}
        {view === "picture" && catalog ? (
          <Overlay rows={rows} at={diff.to} />
        ) : show ? (
          show(rows)
        ) : (
          <ChangedRows rows={rows} />
        )}
      </div>
    </div>
  );
}

function totalOf({ counts }: Diff): number {
  return Object.values(counts).reduce((sum, one) => sum + Object.values(one).reduce((n, m) => n + m, 0), 0);
}

function TypeFilter({
  counts,
  type,
  op,
}: {
  counts: Diff["counts"];
  type: string | undefined;
  op: string | undefined;
}) {
  const cell = (name: string, of: Op, n: number) =>
    n > 0 && (
      <button
        type="button"
        class={`count-${TONES[of]}`}
        aria-pressed={type === name && op === of}
        aria-label={`${name}: ${counted(n, "row")} ${WORDS[of]}`}
        onClick={() => toggle(name, of)}
      >
        {SIGNS[of]}
        {count(n)}
      </button>
    );
  const toggle = (name: string, of: Op | null) =>
    setParams(type === name && (of === null || op === of) ? { type: null, op: null } : { type: name, op: of });
  return (
    <ul class="type-counts type-filter">
      {Object.entries(counts).map(([name, one]) => (
        <li key={name} class={type === name ? "chosen" : undefined}>
          <button type="button" class="type-name" aria-pressed={type === name} onClick={() => toggle(name, null)}>
            {name}
          </button>
          <span class="counts">
            {cell(name, "insert", one["inserted"] ?? 0)}
            {cell(name, "update", one["updated"] ?? 0)}
            {cell(name, "delete", one["deleted"] ?? 0)}
          </span>
        </li>
      ))}
    </ul>
  );
}

function SchemaSteps({ steps }: { steps: Diff["schema"] }) {
  return (
    <section>
      <h3>Schema</h3>
      <ul class="schema-steps">
        {steps.map((step, i) => {
          const { kind, ...rest } = step;
          const told = Object.values(rest)
            .filter((v) => typeof v === "string")
            .join(" ");
          return (
            <li key={i}>
              {valueText(kind ?? null).replaceAll("_", " ")} <strong>{told}</strong>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

const COLUMNS: Column<DiffRow>[] = [
  {
    name: "",
    head: <span class="hidden-visually">What happened</span>,
    cell: (row) => (
      <span class={`count-${TONES[row.operation]}`} title={WORDS[row.operation]}>
        <span aria-hidden="true">{SIGNS[row.operation]}</span>
        <span class="hidden-visually">{WORDS[row.operation]}</span>
      </span>
    ),
  },
  { name: "Type", cell: (row) => (row.kind === "node" ? <TypeChip type={row.type} /> : row.type) },
  { name: "Row", cell: (row) => <RowName row={row} /> },
  { name: "Cells", cell: (row) => <Cells row={row} /> },
];

/** A node by its id, an edge by its ends: ids of edges are mostly made up. */
function RowName({ row }: { row: DiffRow }) {
  const ends = row.after ?? row.before;
  if (row.kind === "node" || !ends) return <span class="mono">{visible(row.id)}</span>;
  return (
    <span title={visible(row.id)}>
      {valueText(ends["src"])} <span aria-label="to">→</span> {valueText(ends["dst"])}
    </span>
  );
}

function ChangedRows({ rows }: { rows: readonly DiffRow[] }) {
  if (rows.length === 0) return <Empty>No row of this kind changed.</Empty>;
  return (
    <Table
      label="Changed rows"
      columns={COLUMNS}
      rows={rows}
      rowKey={(row) => `${row.kind}:${row.type}:${row.id}`}
      class="changed-rows"
    />
  );
}

function Cells({ row }: { row: DiffRow }) {
  const { catalog } = useHere();
  const declared = [...(catalog?.nodes ?? []), ...(catalog?.edges ?? [])].find((info) => info.name === row.type);
  const order = ["src", "dst", ...(declared?.properties ?? []).map((property) => property.name)];
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  const names = [...new Set([...Object.keys(row.before ?? {}), ...Object.keys(row.after ?? {})])]
    .filter((name) => name !== "id" && !(row.operation !== "update" && name in ENDS))
    .sort((a, b) => place(a) - place(b));
  const shown = row.operation === "update" ? names : names.filter((name) => (row.after ?? row.before)?.[name] !== null);
  return (
    <span class="row-cells">
      {shown.map((name) => (
        <span key={name} class="cell">
          <span class="faint">{ENDS[name] ?? name}</span>{" "}
          {row.operation !== "insert" && <Old value={row.before?.[name]} />}
          {row.operation === "update" && <span aria-hidden="true"> → </span>}
          {row.operation !== "delete" && <New value={row.after?.[name]} />}
        </span>
      ))}
    </span>
  );
}

function Old({ value }: { value: Json | undefined }) {
  return <del>{valueText(value)}</del>;
}

function New({ value }: { value: Json | undefined }) {
  return <ins>{valueText(value)}</ins>;
}

function Overlay({ rows, at }: { rows: readonly DiffRow[]; at: string }) {
  const { client } = useHere();
  const whole = useAsync(() => withEnds(client, rows, at), [client, rows, at]);
  return whole.value ? (
    <Signed rows={whole.value} />
  ) : (
    <div class="panel-body">
      <Progress label="Drawing" />
    </div>
  );
}

function Signed({ rows }: { rows: readonly DiffRow[] }) {
  const { catalog, styles } = useHere();
  const scene = useMemo(() => overlayOf(rows, catalog!), [rows, catalog]);
  const look = useMemo(() => lookOf(catalog, styles), [catalog, styles]);
  const [selected, setSelected] = useState<string | null>(null);
  const node =
    selected !== null && scene.picture.hasNode(selected) ? scene.picture.getNodeAttribute(selected, "node") : undefined;
  const own = node ? rows.filter((row) => row.kind === "node" && row.type === node.type && row.id === node.id) : [];
  return (
    <div class="overlay">
      <ul class="row overlay-signs" aria-label="Signs">
        {(["insert", "update", "delete"] as const).map((op) => (
          <li key={op} class={`count-${TONES[op]}`}>
            {SIGNS[op]} {WORDS[op]}
          </li>
        ))}
        <li class="muted">no sign: unchanged</li>
      </ul>
      <PictureView scene={scene} selected={selected} look={look} onSelect={setSelected} />
      {node && (
        <p class="overlay-node" role="status">
          <strong>
            {node.type} {visible(node.id)}
          </strong>{" "}
          {own[0] ? <Cells row={own[0]} /> : <span class="muted">did not change itself; edges of it did.</span>}
        </p>
      )}
    </div>
  );
}
