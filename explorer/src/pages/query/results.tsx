/** What a query gave: as a graph, a table, JSON, or the plan that made it. */
import { useMemo } from "preact/hooks";
import { GraphCanvas } from "../../canvas";
import { copy } from "../../clipboard";
import { useHere } from "../../context";
import { count, counted, seconds, shortCommit, visible } from "../../format";
import { useAsync } from "../../hooks";
import { formatRoute } from "../../router";
import { Button, Empty, Failure, Panel, Progress, Tabs } from "../../ui/basics";
import { DownloadMenu } from "./download";
import { Plan } from "./plan";
import { ResultTable } from "./result-table";
import { draw, type Drawn, type Outcome } from "./run";

export type View = "graph" | "table" | "json" | "plan";
export const VIEWS: readonly View[] = ["graph", "table", "json", "plan"];
const JSON_ROWS_SHOWN = 500;

export function Results({ outcome, view, onView }: { outcome: Outcome; view: View; onView: (view: View) => void }) {
  const here = useHere();
  const { output } = outcome;
  const canDraw = outcome.query !== undefined;
  const shown = view === "graph" && !canDraw ? "table" : view;
  const link = () => {
    const hash = formatRoute({ ...here.route, at: output.graph_commit_id });
    void copy(`${location.origin}${location.pathname}${hash}`, "The link shows exactly this state");
  };
  return (
    <Panel
      class="results"
      title={`${counted(output.row_count, "row")} in ${seconds(outcome.milliseconds)}`}
      actions={
        <>
          <span class="muted small results-at" title={`At commit ${output.graph_commit_id}`}>
            at <span class="mono">{shortCommit(output.graph_commit_id)}</span>
          </span>
          <Button small kind="quiet" onClick={link}>
            Copy link
          </Button>
          <DownloadMenu outcome={outcome} />
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
      <div role="tabpanel" aria-label={`Result as ${shown}`} class="results-body">
        {shown === "graph" && <AsGraph outcome={outcome} />}
        {shown === "table" && <ResultTable outcome={outcome} />}
        {shown === "json" && <AsJson outcome={outcome} />}
        {shown === "plan" && <Plan explain={output.explain} />}
      </div>
    </Panel>
  );
}

function AsGraph({ outcome }: { outcome: Outcome }) {
  const { client, catalog } = useHere();
  const drawn = useAsync(async () => (catalog ? draw(client, catalog, outcome) : null), [outcome]);
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
  if (!drawn.value)
    return <Empty title="Nothing to draw">This query matches no nodes. The table shows its rows.</Empty>;
  if (drawn.value.scene.picture.order === 0) return <NothingMatches />;
  const { scene, point } = drawn.value;
  return <GraphCanvas scene={scene} point={point} label="What the query matched" note={noteOf(drawn.value)} />;
}

function noteOf({ matches, read }: Drawn): string | undefined {
  if (matches === null) return `from the first ${count(read)} matches`;
  return matches > read ? `from the first ${count(read)} of ${counted(matches, "match", "matches")}` : undefined;
}

export function NothingMatches() {
  return (
    <Empty title="Nothing matches">
      No row of this state fits the pattern. Take a condition away, or look at another branch or point in time (
      <kbd>b</kbd>).
    </Empty>
  );
}

function AsJson({ outcome: { output } }: { outcome: Outcome }) {
  const text = useMemo(() => visible(JSON.stringify(output.rows.slice(0, JSON_ROWS_SHOWN), null, 2)), [output]);
  const all = () => copy(JSON.stringify(output.rows, null, 2), `${counted(output.rows.length, "row")} copied`);
  return (
    <div class="as-json">
      <div class="row canvas-bar">
        <Button small onClick={() => void all()}>
          Copy {output.rows.length < output.row_count ? `${count(output.rows.length)} rows` : "all"}
        </Button>
        {output.row_count > JSON_ROWS_SHOWN && (
          <span class="muted">
            The first {count(JSON_ROWS_SHOWN)} of {counted(output.row_count, "row")} are shown.
          </span>
        )}
      </div>
      <pre class="json" tabIndex={0} role="region" aria-label="Rows as JSON">
        {text}
      </pre>
    </div>
  );
}
