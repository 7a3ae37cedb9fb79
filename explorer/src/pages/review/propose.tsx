/** Offering a branch for merging. */
import { useState } from "preact/hooks";
import type { ApiError } from "../../api";
import { useHere } from "../../context";
import { asApiError } from "../../hooks";
import { go } from "../../router";
import { useReviews } from "../../reviews";
import { AuthorField } from "../../shell/author";
import { Button, Dialog, Failure, Field } from "../../ui/basics";
import { toast } from "../../ui/toast";

interface Props {
  readonly source: string;
  readonly target: string;
  readonly onClose: () => void;
}

export function ProposeDialog({ source: first, target: second, onClose }: Props) {
  const { branches } = useHere();
  const reviews = useReviews();
  const [source, setSource] = useState(first);
  const [target, setTarget] = useState(second);
  const [title, setTitle] = useState("");
  const [text, setText] = useState("");
  const [asked, setAsked] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const ready = title.trim() !== "" && source !== "" && source !== target && !busy;
  const propose = async () => {
    if (!ready) return;
    setBusy(true);
    setError(undefined);
    try {
      const reviewers = asked.split(",").flatMap((name) => name.trim() || []);
      const made = await reviews.propose({ source, target, title: title.trim(), text, reviewers });
      toast(`Proposal ${made.number} is open`);
      onClose();
      go({ page: "review", params: { n: String(made.number) } });
    } catch (failure) {
      setError(asApiError(failure));
      setBusy(false);
    }
  };
  const choice = (value: string, onChange: (name: string) => void) => (id: string) => (
    <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {branches.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
  return (
    <Dialog
      title="Propose a branch"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={!ready} onClick={() => void propose()}>
            {busy ? "Proposing…" : "Propose"}
          </Button>
        </>
      }
    >
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void propose();
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void propose();
        }}
      >
        <AuthorField />
        <div class="two-fields">
          <Field label="Branch">{choice(source, setSource)}</Field>
          <Field label="Into">{choice(target, setTarget)}</Field>
        </div>
        <Field label="Title">
          {(id) => (
            <input
              id={id}
              autofocus
              maxLength={500}
              value={title}
              placeholder="What it changes, in a few words"
              onInput={(event) => setTitle(event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label="Description">
          {(id) => (
            <textarea
              id={id}
              rows={5}
              maxLength={64_000}
              value={text}
              placeholder="Why, and where the facts come from"
              onInput={(event) => setText(event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label="Reviewers" hint="Names, separated by commas">
          {(id, describedBy) => (
            <input
              id={id}
              aria-describedby={describedBy}
              value={asked}
              onInput={(event) => setAsked(event.currentTarget.value)}
            />
          )}
        </Field>
        {source === target && <p class="field-error">A branch cannot be proposed for itself.</p>}
        {error && <Failure error={error} />}
        <button type="submit" class="hidden-visually" tabIndex={-1} aria-hidden="true" disabled={!ready} />
      </form>
    </Dialog>
  );
}
