/** The place to ask: the editor or a stored query, its parameters, and the button that runs it. */
import { useMemo, useState } from "preact/hooks";
import type { QueryInfo } from "../../api";
import { useHere } from "../../context";
import { Editor, type Place } from "../../editor";
import { queryLanguage } from "../../editor/languages";
import { ProblemCount, ProblemList } from "../../editor/problems";
import { keyLabel } from "../../keys";
import { offersForQuery } from "../../lang/complete";
import { queriesOf } from "../../lang/queries";
import { Button, Panel } from "../../ui/basics";
import { ParamsForm } from "./params";
import type { Question } from "./question";
import type { Runner } from "./runner";

export function AskPanel({ question, runner }: { question: Question; runner: Runner }) {
  const { catalog } = useHere();
  const { draft, stored, params } = question;
  const [place, setPlace] = useState<Place>();
  return (
    <Panel label="Editor" class="editor-panel">
      {stored ? (
        <StoredHead
          stored={stored}
          onLeave={() => {
            runner.clear();
            question.openStored(null);
          }}
        />
      ) : (
        <Editor
          label="Query text"
          draft={draft}
          language={queryLanguage}
          diagnostics={question.diagnostics}
          onChange={question.type}
          onRun={runner.run}
          onCursor={question.setCursor}
          goTo={place}
          offers={(text, offset) => (catalog ? offersForQuery(text, offset, catalog) : null)}
        />
      )}
      {params.length > 0 && (
        <ParamsForm
          params={params}
          texts={question.texts}
          errors={runner.tried ? question.parsed.errors : {}}
          onChange={question.setTexts}
          onRun={runner.run}
        />
      )}
      <RunBar question={question} runner={runner} />
      {!stored && (
        <ProblemList
          diagnostics={question.diagnostics}
          onGo={setPlace}
          onFix={({ from, to }, better) => question.replace(draft.text.slice(0, from) + better + draft.text.slice(to))}
        />
      )}
    </Panel>
  );
}

function RunBar({ question, runner }: { question: Question; runner: Runner }) {
  const here = useHere();
  const { stored, query, mutation } = question;
  const several = useMemo(() => queriesOf(question.draft.text).length > 1, [question.draft.text]);
  const refused = mutation && !here.may("change");
  return (
    <footer class="run-bar">
      <Button kind="primary" onClick={runner.run} disabled={runner.running || refused || (!stored && !query)}>
        {mutation ? "Run…" : "Run"}{" "}
        <kbd class="on-primary" aria-hidden="true">
          {keyLabel("mod+Enter")}
        </kbd>
      </Button>
      {runner.running && <Button onClick={runner.stop}>Stop</Button>}
      {several && !stored && (
        <span class="muted">
          Runs <code>{query?.name}</code>, where the cursor stands
        </span>
      )}
      {refused && (
        <span class="muted">{here.route.at ? "The past cannot be changed." : "You may not change this branch."}</span>
      )}
      {!stored && <ProblemCount diagnostics={question.diagnostics} checking={question.checking} />}
    </footer>
  );
}

function StoredHead({ stored, onLeave }: { stored: QueryInfo; onLeave: () => void }) {
  return (
    <div class="panel-body stored-head">
      <div class="row spread">
        <h2>{stored.name}</h2>
        <Button small onClick={onLeave}>
          Back to the editor
        </Button>
      </div>
      <p class="muted">{stored.description ?? "A query stored on the server."}</p>
    </div>
  );
}
