/** What a query gave: as a graph, a table, JSON, or the plan that made it. */
import { useMemo } from "preact/hooks";
import { GraphCanvas } from "../../canvas";
import { useHere } from "../../context";
import { count, counted, seconds, shortCommit } from "../../format";
import { useAsync } from "../../hooks";
import { formatRoute } from "../../router";
import { Button, Empty, Failure, Panel, Progress, Tabs } from "../../ui/basics";
import { RowsTable } from "../../ui/table";
import { toast } from "../../ui/toast";
import { Plan } from "./plan";
import { draw, type Outcome } from "./run";

export type View = "graph" | "table" | "json" | "plan";
export const VIEWS: readonly View[] = ["graph", "table", "json", "plan"];
const JSON_ROWS_SHOWN = 500;

export function Results({ outcome, view, onView }: { outcome: Outcome; view: View; onView: (view: View) => void }) {
  const here = useHere();
  const { output } = outcome;
  const canDraw = outcome.query !== undefined;
  const shown = view === "graph" && !canDraw ? "table" : view;
  const link = async () => {
    const { route } = here;
    const hash = formatRoute({ ...route, at: output.graph_commit_id });
    await navigator.clipboard.writeText(`${location.origin}${location.pathname}${hash}`);
    toast("The link shows exactly this state");
  };
  return (
    <Panel
      title={`${counted(output.row_count, "row")} in ${seconds(outcome.milliseconds)}`}
      actions={
        <>
          <span class="muted small">
            at <span class="mono">{shortCommit(output.graph_commit_id)}</span>
          </span>
          <Button small kind="quiet" onClick={() => void link()}>
            Copy link
          </Button>
          <Tabs
            label="Show the result as"
            value={shown}
            onChange={onView}
            options={[
              { value: "graph", label: "Graph", disabled: !canDraw },
              { value: "table", label: "Table" },
              { value: "json", label: "JSON" },
              { value: "plan", label: "Plan", disabled: !output.explain },
            ]}
          />
        </>
      }
    >
      <div role="tabpanel" aria-label={`Result as ${shown}`}>
        {shown === "graph" && <AsGraph outcome={outcome} />}
        {shown === "table" && <AsTable outcome={outcome} />}
        {shown === "json" && <AsJson outcome={outcome} />}
        {shown === "plan" && <Plan explain={output.explain} />}
      </div>
    </Panel>
  );
}

function AsGraph({ outcome }: { outcome: Outcome }) {
  const { client, point, catalog } = useHere();
  const drawn = useAsync(async () => (catalog ? draw(client, point, catalog, outcome) : null), [outcome]);
  if (drawn.error)
    return (
      <div class="panel-body">
        <Failure error={drawn.error} retry={drawn.reload} />
      </div>
    );
  if (drawn.loading)
    return (
      <div class="panel-body">
        <Progress label="Drawing" />
      </div>
    );
  if (!drawn.value) return <Empty>This query matches no nodes that could be drawn. The table shows its rows.</Empty>;
  if (drawn.value.scene.picture.order === 0) return <Empty>Nothing matches.</Empty>;
  return <GraphCanvas scene={drawn.value.scene} point={drawn.value.point} label="What the query matched" />;
}

function AsTable({ outcome: { output } }: { outcome: Outcome }) {
  const columns = output.columns ?? Object.keys(output.rows[0] ?? {});
  if (output.rows.length === 0) return <Empty>Nothing matches.</Empty>;
  return <RowsTable label="Rows of the result" columns={columns} rows={output.rows} />;
}

function AsJson({ outcome: { output } }: { outcome: Outcome }) {
  const text = useMemo(() => JSON.stringify(output.rows.slice(0, JSON_ROWS_SHOWN), null, 2), [output]);
  const copy = async () => {
    await navigator.clipboard.writeText(JSON.stringify(output.rows, null, 2));
    toast(`${counted(output.row_count, "row")} copied`);
  };
  return (
    <div>
      <div class="row canvas-bar">
        <Button small onClick={() => void copy()}>
          Copy all
        </Button>
        {output.rows.length > JSON_ROWS_SHOWN && (
          <span class="muted">The first {count(JSON_ROWS_SHOWN)} rows are shown.</span>
        )}
      </div>
      <pre class="json" tabIndex={0} aria-label="Rows as JSON">
        {text}
      </pre>
    </div>
  );
}
