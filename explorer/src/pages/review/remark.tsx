/** Writing a comment: a field, a button, Ctrl and Enter; Escape leaves it. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../../api";
import { asApiError } from "../../hooks";
import { keyLabel } from "../../keys";
import { AuthorField } from "../../shell/author";
import { Button, Failure } from "../../ui/basics";

interface Props {
  readonly label: string;
  readonly placeholder?: string;
  readonly send: (text: string) => Promise<unknown>;
  readonly onCancel?: () => void; // with it, the field is opened on purpose, and takes the focus
  readonly id?: string;
}

export function RemarkForm({ label, placeholder, send, onCancel, id }: Props) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    if (onCancel) field.current?.focus();
  }, []);
  const submit = async () => {
    if (!text.trim() || busy) return;
    setBusy(true);
    setError(undefined);
    try {
      await send(text);
      setText("");
    } catch (failure) {
      setError(asApiError(failure));
    }
    setBusy(false);
  };
  return (
    <form
      class="remark-form"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape" && onCancel) {
          event.preventDefault();
          event.stopPropagation();
          onCancel();
        } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          void submit();
        }
      }}
    >
      <AuthorField />
      <textarea
        ref={field}
        id={id}
        aria-label={label}
        placeholder={placeholder ?? label}
        rows={onCancel ? 2 : 3}
        maxLength={64_000}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {error && <Failure error={error} />}
      <div class="row remark-actions">
        <span class="faint small" aria-hidden="true">
          {keyLabel("mod+Enter")}
        </span>
        {onCancel && (
          <Button small onClick={onCancel}>
            Cancel
          </Button>
        )}
        <Button small kind="primary" type="submit" disabled={!text.trim() || busy}>
          {busy ? "Sending…" : "Comment"}
        </Button>
      </div>
    </form>
  );
}
