/** What came of a run: a result, a change, a failure, or nothing yet. */
import type { ApiError, ChangeOutput } from "../../api";
import { copy } from "../../clipboard";
import { useHere } from "../../context";
import { counted } from "../../format";
import { href, setParams, useRoute } from "../../router";
import { Button, Empty, Failure, Notice, Progress } from "../../ui/basics";
import type { QueryText } from "../../lang/queries";
import type { Question } from "./question";
import { Results, type View, VIEWS } from "./results";
import type { Runner } from "./runner";

export function OutcomeView({ question, runner }: { question: Question; runner: Runner }) {
  const { route } = useHere();
  const view = useView(question);
  const { done } = runner;
  if (runner.running) return <Progress label="Running" />;
  if (!done)
    return (
      <Empty title="Ready when you are">
        Run the query to see what it finds: as a picture, a table, JSON and a plan. <kbd>?</kbd> shows all keys.
      </Empty>
    );
  if ("error" in done) return <RunFailure error={done.error} question={question} />;
  if ("outcome" in done)
    return <Results outcome={done.outcome} view={view} onView={(next) => setParams({ view: next })} />;
  return done.changed.branch === route.branch ? <Changed changed={done.changed} /> : null;
}

/** The view the address asks for; without one, groups are a table and matches a graph. */
function useView({ query, stored }: Question): View {
  const { params } = useRoute();
  const grouped = query?.branches.some((branch) => branch.grouped) || stored !== null;
  return VIEWS.find((view) => view === params["view"]) ?? (grouped ? "table" : "graph");
}

function RunFailure({ error, question }: { error: ApiError; question: Question }) {
  const tooMany = error.code === "limit_exceeded" && error.details["limit"] === "max_rows" && !question.stored;
  const limited = () => question.replace(withLimit(question.draft.text, question.query));
  return (
    <>
      <Failure error={error} />
      {tooMany && (
        <div class="row">
          <Button onClick={limited}>Add a limit of 1,000</Button>
        </div>
      )}
    </>
  );
}

export function withLimit(text: string, query: QueryText | undefined): string {
  if (query?.bare) return `${text.trimEnd()}\nlimit 1000\n`;
  const close = text.lastIndexOf("}", query === undefined ? undefined : query.end - 1);
  return close < 0 ? text : `${text.slice(0, close).trimEnd()}\n  limit 1000\n${text.slice(close)}`;
}

function Changed({ changed }: { changed: ChangeOutput }) {
  if (!changed.commit) return <Notice>Nothing matched, so nothing was changed and no commit was made.</Notice>;
  const id = changed.commit.graph_commit_id;
  return (
    <Notice tone="good">
      <p>
        <strong>
          {counted(changed.affected_nodes, "node")} and {counted(changed.affected_edges, "edge")} changed
        </strong>{" "}
        on {changed.branch}
      </p>
      <p class="row">
        Commit <code>{id}</code>{" "}
        <Button small kind="quiet" onClick={() => void copy(id)}>
          Copy
        </Button>
        {changed.branch !== "main" && (
          <a href={href({ page: "review", params: { source: changed.branch, target: "main" } })}>Review and merge</a>
        )}
      </p>
    </Notice>
  );
}
