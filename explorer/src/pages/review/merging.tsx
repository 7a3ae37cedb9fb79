/** A merge before it is made: tried again after every decision, and what it would do in a sentence. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { type ApiError, type Conflict, conflictsOf, type MergeOutput } from "../../api";
import { copy } from "../../clipboard";
import { counted } from "../../format";
import { useAsync, useRested } from "../../hooks";
import { href } from "../../router";
import { Badge, Button, Failure, Panel, Progress } from "../../ui/basics";
import { Counts } from "../history/counts";
import { ConflictCard, TypeRule } from "./conflict";
import { byRow, decide, decideType, type Decisions, documentOf, isDecided, joined, UNDECIDED } from "./decisions";

const REST_MILLISECONDS = 250;

/** What a dry run found: what would be published, or what is still to be decided. */
interface Trial {
  readonly outcome?: MergeOutput;
  readonly conflicts: readonly Conflict[];
}

export interface Merging {
  readonly decisions: Decisions;
  readonly decide: (change: (old: Decisions) => Decisions) => void;
  readonly known: readonly Conflict[]; // all that were ever met, so that a decision can be taken back
  readonly undecided: number;
  readonly trial: Trial | undefined;
  readonly error: ApiError | undefined;
  readonly fresh: boolean; // whether the trial knows all decisions
  readonly ready: boolean; // whether a merge would publish something
}

type Document = ReturnType<typeof documentOf>;

/** Try a merge with the decisions made so far; `told` are conflicts somebody else found. */
export function useMerging(
  attempt: (decided: Document) => Promise<MergeOutput>,
  allowed: boolean,
  deps: readonly unknown[],
  told: readonly Conflict[] = [],
): Merging {
  const [decisions, setDecisions] = useState<Decisions>(UNDECIDED);
  const [known, setKnown] = useState<readonly Conflict[]>([]);
  const rested = useRested(decisions, REST_MILLISECONDS);
  const trial = useAsync(async (): Promise<Trial | undefined> => {
    if (!allowed) return undefined;
    try {
      return { outcome: await attempt(documentOf(rested)), conflicts: [] };
    } catch (error) {
      const conflicts = conflictsOf(error);
      if (!conflicts) throw error;
      return { conflicts };
    }
  }, [...deps, rested, allowed]);
  const met = trial.value?.conflicts ?? told;
  useEffect(() => setKnown((old) => joined(old, met)), [met]);
  const outcome = trial.value?.outcome;
  const fresh = rested === decisions && !trial.loading;
  return {
    decisions,
    decide: setDecisions,
    known,
    undecided: known.filter((conflict) => !isDecided(decisions, conflict)).length,
    trial: trial.value,
    error: trial.error,
    fresh,
    ready: fresh && outcome !== undefined && outcome.outcome !== "already_up_to_date",
  };
}

interface ConflictsProps {
  readonly merging: Merging;
  readonly source: string;
  readonly target: string;
}

export function Conflicts({ merging, source, target }: ConflictsProps) {
  const { known, decisions } = merging;
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
            onChange={(side) => merging.decide((old) => decideType(old, type, side))}
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
            onDecide={(conflict, choice) => merging.decide((old) => decide(old, conflict, choice))}
          />
        ))}
      </div>
    </Panel>
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

/** The dry run in a sentence. */
export function Verdict({ merging, target, error }: { merging: Merging; target: string; error?: ApiError }) {
  const { trial, fresh, undecided, known } = merging;
  const failure = error ?? merging.error;
  if (failure) return <Failure error={failure} />;
  if (!trial) return <Progress label="Trying the merge" />;
  const { outcome } = trial;
  if (!outcome)
    return (
      <div class="verdict-line" role="status">
        <Badge tone="warn">
          {undecided > 0 ? `${undecided} of ${known.length} to decide` : fresh ? "not valid yet" : "trying"}
        </Badge>
        <span>
          {undecided > 0
            ? "Both sides changed the same. Decide each, or a whole type at once; nothing is written until you merge."
            : "With these decisions there are further conflicts; they are in the list."}
        </span>
      </div>
    );
  if (outcome.outcome === "already_up_to_date")
    return (
      <div class="verdict-line" role="status">
        <Badge>up to date</Badge>
        <span>{target} has everything already.</span>
      </div>
    );
  return (
    <div class="verdict-line" role="status">
      <Badge tone="good">{fresh ? "ready" : "trying"}</Badge>
      <span>
        {outcome.outcome === "fast_forward"
          ? `${target} did not change meanwhile: it takes over what the branch did.`
          : "Valid as decided. This is what it will do:"}
      </span>
      <MergeCounts merged={outcome} />
    </div>
  );
}

export function MergeCounts({ merged }: { merged: MergeOutput }) {
  return (
    <ul class="row verdict-counts">
      {merged.counts.map((one) => (
        <li key={one.type_name}>
          {one.type_name} <Counts counts={[one]} />
        </li>
      ))}
    </ul>
  );
}

/** Where to go after a merge. */
export function AfterMerge({ commit, target }: { commit: string | null | undefined; target: string }) {
  return (
    <div class="row">
      {commit && (
        <a class="button" href={href({ page: "history", params: { commit } })}>
          Show the commit
        </a>
      )}
      <a class="button" href={href({ page: "query", branch: target })}>
        Query {target}
      </a>
    </div>
  );
}
