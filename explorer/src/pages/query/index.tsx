/** Ask the graph. The text, the values and the view are in the address, so a link shows the same to somebody else. */
import { useShortcut } from "../../keys";
import { AskPanel } from "./ask";
import { ConfirmMutation } from "./mutation";
import { OutcomeView } from "./outcome";
import "./query.css";
import { useQuestion } from "./question";
import { useRunner } from "./runner";
import { Shelf } from "./shelf";

export default function QueryPage() {
  const question = useQuestion();
  const runner = useRunner(question);
  const { draft, name, texts, stored } = question;
  useShortcut("mod+Enter", "Run the query", "Query", runner.run);
  useShortcut("Escape", "Stop waiting for the answer", "Query", runner.stop, runner.running);
  return (
    <div class="page query-page">
      <h1 class="hidden-visually">Query</h1>
      <div class="query-grid">
        <Shelf
          version={runner.runs + question.shelved}
          stored={question.storedQueries}
          current={stored?.name}
          onOpen={(kept) => {
            runner.clear();
            question.open(kept);
          }}
          onStored={(wanted) => {
            runner.clear();
            question.openStored(wanted);
          }}
          onSave={() => ({ text: draft.text, name, texts, at: Date.now() })}
        />
        <div class={runner.done || runner.running ? "query-main has-outcome" : "query-main"}>
          <AskPanel question={question} runner={runner} />
          <OutcomeView question={question} runner={runner} />
        </div>
      </div>
      {runner.asking && (
        <ConfirmMutation
          text={draft.text}
          name={name}
          params={question.parsed.values}
          stored={stored !== null}
          onRun={runner.decide}
          onClose={() => runner.decide(null)}
        />
      )}
    </div>
  );
}
