/** Whether a proposal can be merged now: what it has, what it lacks, and the button. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ApiError } from "../../api";
import { useHere } from "../../context";
import { counted, visible } from "../../format";
import { asApiError } from "../../hooks";
import { setParams } from "../../router";
import { type Proposal, type Review, useReviews } from "../../reviews";
import { AuthorField } from "../../shell/author";
import { Button, Failure, Field, Panel } from "../../ui/basics";
import { toast } from "../../ui/toast";
import { broken, checksInShort } from "./checks";
import { documentOf } from "./decisions";
import { Sign } from "./marks";
import type { Merging } from "./merging";

interface Props {
  readonly proposal: Proposal;
  readonly review: Review;
  readonly merging: Merging;
  readonly mayMerge: boolean;
  readonly onMerged: () => void;
}

export function MergeBox({ proposal, review, merging, mayMerge, onMerged }: Props) {
  const approvals = proposal.reviews.filter((one) => one.verdict === "approved" && one.current).length;
  const conflicts = merging.known.length;
  const against = proposal.reviews.filter((one) => one.verdict === "changes_wanted").map((one) => one.actor);
  const wanting = against.map((actor) => `${actor} wants changes`).filter((one) => !review.missing.includes(one));
  return (
    <Panel label="Merge" class="merge-box">
      <ul class="needs">
        {review.missing.length === 0 && (approvals > 0 || wanting.length === 0) && (
          <Need tone="good" word="fine">
            {approvals > 0
              ? `${counted(approvals, "approval")} of this commit`
              : `${visible(proposal.target)} asks for no approvals`}
          </Need>
        )}
        {[...review.missing, ...wanting].map((one) => (
          <Need key={one} tone="warn" word="missing">
            {visible(one)}
          </Need>
        ))}
        <Need tone={checksTone(review)} word={review.checks.passed ? "fine" : "failed"}>
          <a href="#" onClick={(event) => show(event, "checks")}>
            {checksInShort(review.checks)}
          </a>
          {broken(review.checks).length > 0 && (
            <span class="muted">
              {" "}
              {broken(review.checks)
                .map((one) => visible(one.name))
                .join(", ")}
            </span>
          )}
        </Need>
        {conflicts > 0 ? (
          <Need tone={merging.undecided > 0 ? "warn" : "good"} word={merging.undecided > 0 ? "conflicts" : "decided"}>
            <a href="#" onClick={(event) => show(event, "conflicts")}>
              {merging.undecided > 0
                ? `${merging.undecided} of ${counted(conflicts, "conflict")} to decide`
                : `${counted(conflicts, "conflict")} decided`}
            </a>
          </Need>
        ) : (
          <Need tone="good" word="fine">
            {review.outcome === "already_up_to_date"
              ? `${visible(proposal.target)} has everything already`
              : `No conflicts with ${visible(proposal.target)}`}
          </Need>
        )}
      </ul>
      {mayMerge ? (
        <MergeForm proposal={proposal} review={review} merging={merging} onMerged={onMerged} />
      ) : (
        <p class="panel-body muted merge-not">You may not merge into {visible(proposal.target)}.</p>
      )}
    </Panel>
  );
}

function checksTone(review: Review): "good" | "bad" | "plain" {
  if (!review.checks.passed) return "bad";
  return review.checks.results.length > 0 ? "good" : "plain";
}

function show(event: MouseEvent, tab: string): void {
  event.preventDefault();
  setParams({ tab }, {});
}

function Need(props: { tone: "good" | "bad" | "warn" | "plain"; word: string; children: ComponentChildren }) {
  return (
    <li>
      <Sign tone={props.tone} word={props.word} />
      <span>{props.children}</span>
    </li>
  );
}

function MergeForm({ proposal, review, merging, onMerged }: Omit<Props, "mayMerge">) {
  const here = useHere();
  const reviews = useReviews();
  const [message, setMessage] = useState(`Merge proposal ${proposal.number}: ${proposal.title}`);
  const [skip, setSkip] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const ready =
    review.missing.length === 0 &&
    (merging.known.length === 0
      ? review.outcome !== "already_up_to_date" && review.outcome !== "conflict"
      : merging.ready) &&
    (review.checks.passed || skip);
  const merge = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await reviews.merge(proposal.number, {
        head: review.head,
        message,
        ...(skip && { skip_checks: true }),
        ...documentOf(merging.decisions),
      });
      toast(`Merged proposal ${proposal.number} into ${proposal.target}`);
      onMerged();
      here.refresh();
    } catch (failure) {
      setError(asApiError(failure));
    }
    setBusy(false);
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
        {(id) => <input id={id} value={message} onInput={(event) => setMessage(event.currentTarget.value)} />}
      </Field>
      {!review.checks.passed && (
        <label class="check">
          <input type="checkbox" checked={skip} onChange={(event) => setSkip(event.currentTarget.checked)} /> Merge
          although checks fail
        </label>
      )}
      <Button type="submit" kind="primary" disabled={!ready || busy}>
        {busy ? "Merging…" : `Merge into ${visible(proposal.target)}`}
      </Button>
      {(error ?? merging.error) && <Failure error={(error ?? merging.error)!} />}
    </form>
  );
}
