/** A review of a proposal: approve it, ask for changes, or close it. */
import { useId, useState } from "preact/hooks";
import type { ApiError } from "../../api";
import { shortCommit } from "../../format";
import { asApiError } from "../../hooks";
import { type Proposal, useReviews } from "../../reviews";
import { AuthorField } from "../../shell/author";
import { Button, Dialog, Failure, Field } from "../../ui/basics";
import { toast } from "../../ui/toast";

type Verdict = "approve" | "changes" | "comment";

interface Props {
  readonly proposal: Proposal;
  readonly head: string; // the commit that was looked at
  readonly own: boolean; // whether it is one's own proposal
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function ReviewDialog({ proposal, head, own, onClose, onDone }: Props) {
  const reviews = useReviews();
  const [verdict, setVerdict] = useState<Verdict>(own ? "comment" : "approve");
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const ready = !busy && (verdict === "approve" || text.trim() !== "");
  const send = async () => {
    if (!ready) return;
    setBusy(true);
    setError(undefined);
    try {
      if (verdict === "approve") await reviews.approve(proposal.number, head, text);
      else if (verdict === "changes") await reviews.requestChanges(proposal.number, head, text);
      else await reviews.comment(proposal.number, text);
      toast({ approve: "Approved", changes: "Asked for changes", comment: "Commented" }[verdict]);
      onDone();
      onClose();
    } catch (failure) {
      setError(asApiError(failure));
      setBusy(false);
    }
  };
  const choice = { verdict, setVerdict };
  return (
    <Dialog
      title="Review"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={!ready} onClick={() => void send()}>
            {busy ? "Sending…" : "Submit review"}
          </Button>
        </>
      }
    >
      <div
        class="stack"
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send();
        }}
      >
        <AuthorField />
        <Field label="Comment">
          {(id) => (
            <textarea
              id={id}
              rows={4}
              maxLength={64_000}
              value={text}
              onInput={(e) => setText(e.currentTarget.value)}
            />
          )}
        </Field>
        <fieldset class="verdict-choice">
          <legend class="hidden-visually">Verdict</legend>
          <Choice {...choice} value="approve" label="Approve" disabled={own}>
            {own ? "Somebody else has to approve what you proposed." : `This commit is fine: ${shortCommit(head)}`}
          </Choice>
          <Choice {...choice} value="changes" label="Request changes">
            It should not be merged before they are made.
          </Choice>
          <Choice {...choice} value="comment" label="Comment">
            Without a verdict.
          </Choice>
        </fieldset>
        {error && <Failure error={error} />}
      </div>
    </Dialog>
  );
}

function Choice(props: {
  verdict: Verdict;
  setVerdict: (verdict: Verdict) => void;
  value: Verdict;
  label: string;
  disabled?: boolean;
  children: string;
}) {
  const id = useId();
  return (
    <label class="verdict-option">
      <input
        type="radio"
        name="verdict"
        checked={props.verdict === props.value}
        disabled={props.disabled}
        aria-describedby={id}
        onChange={() => props.setVerdict(props.value)}
      />
      <span>
        <strong>{props.label}</strong>
        <span id={id} class="muted small">
          {props.children}
        </span>
      </span>
    </label>
  );
}

export function CloseDialog(props: { proposal: Proposal; onClose: () => void; onDone: () => void }) {
  const reviews = useReviews();
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const close = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await reviews.close(props.proposal.number, text);
      toast(`Closed proposal ${props.proposal.number}`);
      props.onDone();
      props.onClose();
    } catch (failure) {
      setError(asApiError(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Close proposal ${props.proposal.number}`}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="danger" disabled={busy} onClick={() => void close()}>
            {busy ? "Closing…" : "Close without merging"}
          </Button>
        </>
      }
    >
      <div class="stack">
        <p>The branch {props.proposal.source} stays as it is, and can be proposed again.</p>
        <AuthorField />
        <Field label="Why (optional)">
          {(id) => <textarea id={id} rows={3} value={text} onInput={(e) => setText(e.currentTarget.value)} />}
        </Field>
        {error && <Failure error={error} />}
      </div>
    </Dialog>
  );
}
