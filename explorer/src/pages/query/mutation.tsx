/** Before a mutation runs: what it will do, where, and a chance to do it on a branch of its own. */
import { useState } from "preact/hooks";
import type { ChangeOutput, Json } from "../../api";
import { useHere } from "../../context";
import { counted } from "../../format";
import { useAsync } from "../../hooks";
import { AuthorField } from "../../shell/author";
import { statementsOf } from "../../lang/statements";
import { Button, Dialog, Failure, Field, Notice, Progress } from "../../ui/basics";

export interface Decision {
  readonly branch: string;
  readonly create: boolean;
  readonly message: string;
}

interface Props {
  readonly text: string;
  readonly name: string;
  readonly params: Record<string, Json>;
  readonly stored: boolean; // its text is not told, so it cannot be tried
  readonly onRun: (decision: Decision) => void;
  readonly onClose: () => void;
}

export function ConfirmMutation({ text, name, params, stored, onRun, onClose }: Props) {
  const { client, route, may } = useHere();
  const trial = useAsync(
    async () => (stored ? null : client.mutate(route.branch, { query: text, name, params, dry_run: true })),
    [],
  );
  const offersBranch = may("branch_create");
  const [apart, setApart] = useState(route.branch === "main" && offersBranch);
  const [branch, setBranch] = useState(
    `${name === "q" ? "edit" : name.replaceAll("_", "-")}-${new Date().toISOString().slice(0, 10)}`,
  );
  const [message, setMessage] = useState("");
  const run = () => onRun({ branch: apart ? branch.trim() : route.branch, create: apart, message: message.trim() });
  return (
    <Dialog
      title="This query changes the graph"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={(apart && !branch.trim()) || trial.error !== undefined} onClick={run}>
            {apart ? "Run on a new branch" : `Run on ${route.branch}`}
          </Button>
        </>
      }
    >
      {!stored && <Statements text={text} name={name} />}
      {trial.error && <Failure error={trial.error} />}
      {trial.loading && <Progress label="Trying it, without changing anything" />}
      {trial.value && <Touched trial={trial.value} />}
      {offersBranch && <Where apart={apart} branch={route.branch} onChange={setApart} />}
      {apart && (
        <Field label="Name of the branch">
          {(id) => (
            <input
              id={id}
              value={branch}
              spellcheck={false}
              onInput={(event) => setBranch(event.currentTarget.value)}
            />
          )}
        </Field>
      )}
      {!apart && route.branch === "main" && (
        <Notice tone="warn">
          Everybody who reads main will see it at once. It can be undone by reverting the commit.
        </Notice>
      )}
      <AuthorField />
      <Field label="Message" hint="What it is for; it is kept in the commit.">
        {(id, describedBy) => (
          <input
            id={id}
            value={message}
            autofocus
            aria-describedby={describedBy}
            onInput={(event) => setMessage(event.currentTarget.value)}
          />
        )}
      </Field>
    </Dialog>
  );
}

function Statements({ text, name }: { text: string; name: string }) {
  return (
    <ul class="statements">
      {statementsOf(text, name).map(({ verb, sign, type, what }, i) => (
        <li key={i}>
          <span class={`sign sign-${verb}`} aria-hidden="true">
            {sign}
          </span>{" "}
          <strong>{verb}</strong> {type} <span class="muted">{what}</span>
        </li>
      ))}
    </ul>
  );
}

function Touched({ trial }: { trial: ChangeOutput }) {
  return (
    <p role="status">
      It would touch <strong>{counted(trial.affected_nodes, "node")}</strong> and{" "}
      <strong>{counted(trial.affected_edges, "edge")}</strong>.
    </p>
  );
}

function Where({ apart, branch, onChange }: { apart: boolean; branch: string; onChange: (apart: boolean) => void }) {
  return (
    <fieldset class="radio">
      <legend>Where</legend>
      <label>
        <input type="radio" name="where" checked={apart} onChange={() => onChange(true)} /> On a new branch, to review
        and merge later
      </label>
      <label>
        <input type="radio" name="where" checked={!apart} onChange={() => onChange(false)} /> Directly on {branch}
      </label>
    </fieldset>
  );
}
