/** Small parts every page is made of. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { ApiError } from "../api";
import { helpHere } from "../help";
import { Prose } from "./prose";

type ButtonProps = JSX.IntrinsicElements["button"] & {
  kind?: "primary" | "plain" | "danger" | "quiet";
  small?: boolean;
};

export function Button({ kind = "plain", small, class: extra, ...rest }: ButtonProps) {
  const names = ["button", `button-${kind}`, small ? "button-small" : "", extra ?? ""].join(" ").trim();
  return <button type="button" {...rest} class={names} />;
}

export function Panel(props: {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  class?: string;
  children?: ComponentChildren;
  label?: string;
}) {
  const id = useId();
  return (
    <section
      class={`panel ${props.class ?? ""}`}
      aria-labelledby={props.title ? id : undefined}
      aria-label={props.title ? undefined : props.label}
    >
      {(props.title || props.actions) && (
        <header class="panel-head">
          <h2 id={id}>{props.title}</h2>
          <div class="row">{props.actions}</div>
        </header>
      )}
      {props.children}
    </section>
  );
}

export function Badge(props: {
  tone?: "plain" | "good" | "warn" | "bad" | "accent";
  children: ComponentChildren;
  title?: string;
}) {
  return (
    <span class={`badge badge-${props.tone ?? "plain"}`} title={props.title}>
      {props.children}
    </span>
  );
}

/** A label above its control. */
export function Field(props: {
  label: string;
  hint?: ComponentChildren;
  error?: string;
  children: (id: string, describedBy: string | undefined) => ComponentChildren;
}) {
  const id = useId();
  const more = props.error ?? props.hint;
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.children(id, more ? `${id}-more` : undefined)}
      {more && (
        <div id={`${id}-more`} class={props.error ? "field-error" : "field-hint"}>
          {more}
        </div>
      )}
    </div>
  );
}

export function Tabs<T extends string>(props: {
  label: string;
  value: T;
  options: readonly { value: T; label: ComponentChildren; disabled?: boolean }[];
  onChange: (value: T) => void;
}) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const open = props.options.filter((o) => !o.disabled);
    const at = open.findIndex((o) => o.value === props.value);
    const next = open[(at + step + open.length) % open.length];
    if (!next) return;
    event.preventDefault();
    props.onChange(next.value);
    const list = event.currentTarget as HTMLElement;
    requestAnimationFrame(() => list.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
  };
  return (
    <div class="tabs" role="tablist" aria-label={props.label} onKeyDown={move}>
      {props.options.map((option) => (
        <button
          type="button"
          role="tab"
          key={option.value}
          disabled={option.disabled}
          aria-selected={option.value === props.value}
          tabIndex={option.value === props.value ? 0 : -1}
          onClick={() => props.onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </div>
  );
}

/** A failure as a person can use it: what, and what to do. */
export function Failure({ error, retry }: { error: ApiError; retry?: () => void }) {
  const help = helpHere(error);
  return (
    <div class="notice notice-bad" role="alert">
      <p>
        <strong>
          {error.denied ? "Not allowed: " : ""}
          <Prose text={error.message} />
        </strong>{" "}
        <code class="faint">{error.code}</code>
      </p>
      {help && (
        <p class="muted">
          <Prose text={help} />
        </p>
      )}
      {retry && !error.denied && (
        <Button small onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Notice(props: { tone?: "plain" | "good" | "warn" | "bad"; children: ComponentChildren }) {
  return <div class={`notice notice-${props.tone ?? "plain"}`}>{props.children}</div>;
}

/** Nothing is there: what that means, and what to do next. */
export function Empty({ title, children }: { title?: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      {title && <p class="empty-title">{title}</p>}
      {children}
    </div>
  );
}

/** Where something will be once it is loaded. */
export function Skeleton({ label, rows = 4 }: { label: string; rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, i) => (
        <span key={i} style={{ width: `${88 - ((i * 37) % 45)}%` }} />
      ))}
    </div>
  );
}

/** Something takes time; with a share between 0 and 1 where it is known. */
export function Progress({ label, share }: { label: string; share?: number }) {
  return (
    <div class="progress" role="status">
      <span>{label}</span>
      <progress value={share} max={1} aria-label={label} />
    </div>
  );
}

/** A dialog above everything: the focus stays in it, Escape closes it. */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  actions?: ComponentChildren;
  wide?: boolean;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    firstField(ref.current)?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={props.wide ? "dialog dialog-wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => event.target === ref.current && props.onClose()}
    >
      <div class="dialog-body">
        <div class="panel-head">
          <h2 id={id}>{props.title}</h2>
          <Button kind="quiet" small aria-label="Close" onClick={props.onClose}>
            ✕
          </Button>
        </div>
        {props.children}
        {props.actions && <div class="dialog-actions">{props.actions}</div>}
      </div>
    </dialog>
  );
}

/** Where to begin: what asks to be first, else the first field, else the button that goes on; never the one that closes. */
function firstField(dialog: HTMLDialogElement | null): HTMLElement | null | undefined {
  const asked = dialog?.querySelector<HTMLElement>("[autofocus]");
  const field = dialog?.querySelector<HTMLElement>("input:not([type=radio], [type=checkbox]), select, textarea");
  return (
    asked ?? field ?? dialog?.querySelector<HTMLElement>(".dialog-actions .button-primary, .dialog-actions .button")
  );
}
