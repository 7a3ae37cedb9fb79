/** Take a commit back: first what that would do, then do it. */
import { useState } from "preact/hooks";
import { type ApiError, type Commit, conflictsOf } from "../../api";
import { useHere } from "../../context";
import { asApiError, useAsync } from "../../hooks";
import { href } from "../../router";
import { Button, Dialog, Failure, Field, Notice, Progress } from "../../ui/basics";
import { AuthorField } from "../../shell/author";
import { toast } from "../../ui/toast";
import { Counts } from "./counts";

interface Props {
  readonly commit: Commit;
  readonly branch: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function RevertDialog({ commit, branch, onClose, onDone }: Props) {
  const { client } = useHere();
  const [message, setMessage] = useState(`Revert: ${commit.message ?? commit.kind}`);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const body = { commit: commit.graph_commit_id, branch };
  const planned = useAsync(() => client.revert({ ...body, dry_run: true }), [client]);
  const conflicts = conflictsOf(planned.error);
  const revert = async () => {
    setBusy(true);
    try {
      const done = await client.revert({ ...body, message });
      toast(done.commit ? `Reverted on ${branch}` : "There was nothing to take back");
      onDone();
    } catch (failure) {
      setError(asApiError(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Revert a commit on ${branch}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={busy || !planned.value} onClick={() => void revert()}>
            Revert
          </Button>
        </>
      }
    >
      <p>
        A new commit undoes what <strong>{commit.message ?? commit.kind}</strong> did. Nothing is lost: the history
        keeps both.
      </p>
      {planned.loading && <Progress label="Working out what changes" />}
      {planned.value && (
        <ul class="type-counts" aria-label="What changes">
          {planned.value.counts.map((one) => (
            <li key={one.type_name}>
              <span>{one.type_name}</span>
              <Counts counts={[one]} />
            </li>
          ))}
          {planned.value.counts.length === 0 && <li class="muted">Nothing would change.</li>}
        </ul>
      )}
      {conflicts && (
        <Notice tone="warn">
          <p>Later commits build on it:</p>
          <ul>
            {conflicts.slice(0, 5).map((one, i) => (
              <li key={i}>{one.message}</li>
            ))}
          </ul>
          <a href={href({ page: "query", branch })}>Change the rows themselves</a>
        </Notice>
      )}
      {planned.error && !conflicts && <Failure error={planned.error} />}
      <AuthorField />
      <Field label="Message">
        {(id) => <input id={id} value={message} onInput={(e) => setMessage(e.currentTarget.value)} />}
      </Field>
      {error && <Failure error={error} />}
    </Dialog>
  );
}
