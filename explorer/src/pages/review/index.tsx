/** Before a merge: what it will do, what both sides changed, and who decides. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { type ApiError, type Conflict, conflictsOf, type MergeOutput } from "../../api";
import { copy } from "../../clipboard";
import { useHere } from "../../context";
import { counted } from "../../format";
import { asApiError, useAsync, useRested } from "../../hooks";
import { href, setParams, useRoute } from "../../router";
import { Badge, Button, Empty, Failure, Field, Panel, Progress } from "../../ui/basics";
import { AuthorField } from "../../shell/author";
import { toast } from "../../ui/toast";
import { Compare } from "../history/compare";
import { Counts } from "../history/counts";
import "../history/history.css";
import { ConflictCard, TypeRule } from "./conflict";
import { byRow, decide, decideType, type Decisions, documentOf, isDecided, joined, UNDECIDED } from "./decisions";
import "./review.css";

const REST_MILLISECONDS = 250;

/** What a dry run found: what would be published, or what is still to be decided. */
interface Trial {
  readonly outcome?: MergeOutput;
  readonly conflicts: readonly Conflict[];
}

export default function ReviewPage() {
  const here = useHere();
  const { params } = useRoute();
  const target = params["target"] ?? "main";
  const fallback = here.route.branch !== target ? here.route.branch : here.branches.find((name) => name !== target);
  const source = params["source"] ?? fallback;
  return (
    <div class="page">
      <div class="page-head">
        <h1>Review</h1>
        <div class="row">
          <BranchChoice label="Merge" value={source ?? ""} onChange={(name) => setParams({ source: name, target })} />
          <span aria-hidden="true">→</span>
          <BranchChoice
            label="into"
            value={target}
            onChange={(name) => setParams({ target: name, ...(source && { source }) })}
          />
        </div>
      </div>
      {!source && <Empty>There is only one branch. Make another, change something on it, and review it here.</Empty>}
      {source && source === target && <Empty>A branch cannot be merged into itself: choose another.</Empty>}
      {source && source !== target && <MergeReview key={`${source}\0${target}`} source={source} target={target} />}
    </div>
  );
}

function BranchChoice({ label, value, onChange }: { label: string; value: string; onChange: (name: string) => void }) {
  const { branches } = useHere();
  const names = branches.includes(value) || !value ? branches : [...branches, value];
  return (
    <label class="inline-label">
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function MergeReview({ source, target }: { source: string; target: string }) {
  const here = useHere();
  const { client } = here;
  const [decisions, setDecisions] = useState<Decisions>(UNDECIDED);
  const [known, setKnown] = useState<readonly Conflict[]>([]);
  const [merged, setMerged] = useState<MergeOutput>();
  const access = useAsync(() => client.access(target), [client, target]);
  const mayMerge = access.value?.actions["branch_merge"] === true;
  const { trial, fresh } = useTrial(source, target, decisions, merged, mayMerge);
  useEffect(() => {
    if (trial.value) setKnown((old) => joined(old, trial.value!.conflicts));
  }, [trial.value]);
  const open = known.filter((conflict) => !isDecided(decisions, conflict)).length;

  if (merged) return <Merged merged={merged} source={source} target={target} />;
  return (
    <>
      <Panel label="What the merge will do" class="verdict">
        {access.value && !mayMerge ? (
          <OnlyLooking source={source} target={target} />
        ) : (
          <Verdict
            trial={trial.value}
            error={trial.error ?? access.error}
            fresh={fresh}
            total={known.length}
            open={open}
            target={target}
          />
        )}
        {mayMerge && (
          <MergeForm
            source={source}
            target={target}
            decisions={decisions}
            ready={fresh && trial.value?.outcome !== undefined && trial.value.outcome.outcome !== "already_up_to_date"}
            onMerged={(done) => {
              setMerged(done);
              here.refresh();
            }}
          />
        )}
      </Panel>
      {known.length > 0 && (
        <Conflicts known={known} decisions={decisions} source={source} target={target} onChange={setDecisions} />
      )}
      <Compare
        a={target}
        b={source}
        fromMergeBase
        title={`What ${source} brings to ${target}`}
        nothing={`${target} has everything ${source} did.`}
      />
      <p class="muted small">
        Only what {source} did since the two parted is shown; what {target} did meanwhile stays as it is.{" "}
        <a href={href({ page: "history", params: { a: target, b: source } })}>Compare the two states instead</a>
      </p>
    </>
  );
}

/** Whoever may not merge sees what the branch did all the same, and nothing that would be refused. */
function OnlyLooking({ source, target }: { source: string; target: string }) {
  return (
    <div class="panel-body verdict-line" role="status">
      <Badge>look only</Badge>
      <span>
        You may see what {source} brings, but not merge into <strong>{target}</strong>. Somebody with the right to merge
        can open this page by its address.
      </span>
    </div>
  );
}

/** A dry run with the decisions made so far; `fresh` once it knows all of them. */
function useTrial(
  source: string,
  target: string,
  decisions: Decisions,
  merged: MergeOutput | undefined,
  allowed: boolean,
) {
  const { client } = useHere();
  const rested = useRested(decisions, REST_MILLISECONDS);
  const trial = useAsync(async (): Promise<Trial | undefined> => {
    if (!allowed) return undefined;
    try {
      return { outcome: await client.merge({ source, target, dry_run: true, ...documentOf(rested) }), conflicts: [] };
    } catch (error) {
      const conflicts = conflictsOf(error);
      if (!conflicts) throw error;
      return { conflicts };
    }
  }, [client, source, target, rested, merged, allowed]);
  return { trial, fresh: rested === decisions && !trial.loading };
}

interface ConflictsProps {
  readonly known: readonly Conflict[];
  readonly decisions: Decisions;
  readonly source: string;
  readonly target: string;
  readonly onChange: (change: (old: Decisions) => Decisions) => void;
}

/** Every conflict that was ever met, so that a decision can be taken back. */
function Conflicts({ known, decisions, source, target, onChange }: ConflictsProps) {
  const rows = useMemo(() => byRow(known), [known]);
  const types = useMemo(() => [...new Set(known.map((conflict) => conflict.type_name))], [known]);
  return (
    <Panel title={counted(known.length, "conflict")} actions={<DecisionsDocument decisions={decisions} />}>
      <div class="rules panel-body">
        {types.map((type) => (
          <TypeRule
            key={type}
            type={type}
            side={decisions.types[type] ?? null}
            source={source}
            target={target}
            onChange={(side) => onChange((old) => decideType(old, type, side))}
          />
        ))}
      </div>
      <div class="conflicts">
        {rows.map((row) => (
          <ConflictCard
            key={`${row.type}\0${row.id}`}
            row={row}
            decisions={decisions}
            source={source}
            target={target}
            onDecide={(conflict, choice) => onChange((old) => decide(old, conflict, choice))}
          />
        ))}
      </div>
    </Panel>
  );
}

interface VerdictProps {
  readonly trial: Trial | undefined;
  readonly error: ApiError | undefined;
  readonly fresh: boolean;
  readonly total: number;
  readonly open: number;
  readonly target: string;
}

/** The dry run in a sentence; it is made again after every decision. */
function Verdict({ trial, error, fresh, total, open, target }: VerdictProps) {
  if (error)
    return (
      <div class="panel-body">
        <Failure error={error} />
      </div>
    );
  if (!trial)
    return (
      <div class="panel-body">
        <Progress label="Trying the merge" />
      </div>
    );
  const { outcome } = trial;
  if (!outcome) {
    return (
      <div class="panel-body verdict-line" role="status">
        <Badge tone="warn">{open > 0 ? `${open} of ${total} to decide` : fresh ? "not valid yet" : "trying"}</Badge>
        <span>
          {open > 0
            ? "Both sides changed the same. Decide each, or a whole type at once; nothing is written until you merge."
            : "With these decisions there are further conflicts; they are in the list."}
        </span>
      </div>
    );
  }
  if (outcome.outcome === "already_up_to_date")
    return (
      <div class="panel-body verdict-line" role="status">
        <Badge>up to date</Badge>
        <span>{target} has everything already.</span>
      </div>
    );
  return (
    <div class="panel-body verdict-line" role="status">
      <Badge tone="good">{fresh ? "ready" : "trying"}</Badge>
      <span>
        {outcome.outcome === "fast_forward"
          ? `${target} did not change meanwhile: it takes over what the branch did.`
          : "Valid as decided. This is what it will do:"}
      </span>
      <ul class="row verdict-counts">
        {outcome.counts.map((one) => (
          <li key={one.type_name}>
            {one.type_name} <Counts counts={[one]} />
          </li>
        ))}
      </ul>
    </div>
  );
}

interface FormProps {
  readonly source: string;
  readonly target: string;
  readonly decisions: Decisions;
  readonly ready: boolean;
  readonly onMerged: (done: MergeOutput) => void;
}

function MergeForm({ source, target, decisions, ready, onMerged }: FormProps) {
  const { client } = useHere();
  const [message, setMessage] = useState(`Merge ${source} into ${target}`);
  const [remove, setRemove] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const access = useAsync(() => client.access(source), [client, source]);
  const mayRemove = access.value?.actions["branch_delete"] === true && source !== "main";
  const merge = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const done = await client.merge({
        source,
        target,
        message,
        ...(remove && { delete_branch: true }),
        ...documentOf(decisions),
      });
      toast(`Merged ${source} into ${target}`);
      onMerged(done);
    } catch (failure) {
      setError(asApiError(failure));
      setBusy(false);
    }
  };
  return (
    <form
      class="panel-body merge-form"
      onSubmit={(event) => {
        event.preventDefault();
        void merge();
      }}
    >
      <AuthorField />
      <Field label="Message">
        {(id) => <input id={id} value={message} onInput={(e) => setMessage(e.currentTarget.value)} />}
      </Field>
      {mayRemove && (
        <label class="check">
          <input type="checkbox" checked={remove} onChange={(e) => setRemove(e.currentTarget.checked)} /> Delete{" "}
          {source} afterwards
        </label>
      )}
      <Button type="submit" kind="primary" disabled={!ready || busy}>
        {busy ? "Merging…" : `Merge into ${target}`}
      </Button>
      {error && <Failure error={error} />}
    </form>
  );
}

/** The decisions as a document, for the command line and for colleagues. */
function DecisionsDocument({ decisions }: { decisions: Decisions }) {
  const document = () => JSON.stringify(documentOf(decisions), null, 2);
  return (
    <Button
      small
      kind="quiet"
      title="As JSON, for the command line and for colleagues"
      onClick={() => void copy(document(), "The decisions are on the clipboard")}
    >
      Copy decisions
    </Button>
  );
}

function Merged({ merged, source, target }: { merged: MergeOutput; source: string; target: string }) {
  const id = merged.commit?.graph_commit_id;
  return (
    <Panel label="Merged">
      <div class="panel-body stack">
        <div class="verdict-line" role="status">
          <Badge tone="good">merged</Badge>
          <span>
            {source} is in {target} now.
          </span>
        </div>
        <ul class="row verdict-counts">
          {merged.counts.map((one) => (
            <li key={one.type_name}>
              {one.type_name} <Counts counts={[one]} />
            </li>
          ))}
        </ul>
        <div class="row">
          {id && (
            <a class="button" href={href({ page: "history", params: { commit: id } })}>
              Show the commit
            </a>
          )}
          <a class="button" href={href({ page: "query", branch: target })}>
            Query {target}
          </a>
        </div>
      </div>
    </Panel>
  );
}
