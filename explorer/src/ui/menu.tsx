/** A button that opens a list of actions, or a small panel. The focus goes in, Escape and a click elsewhere lead out. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Button } from "./basics";

export interface Item {
  readonly label: ComponentChildren;
  readonly hint?: string;
  readonly disabled?: boolean;
  readonly run: () => void;
}

interface Props {
  readonly label: ComponentChildren;
  readonly name?: string; // what it is called where the label says too little
  readonly kind?: "plain" | "quiet";
  readonly class?: string;
  readonly items?: readonly Item[];
  readonly children?: (close: () => void) => ComponentChildren; // instead of items
}

export function Menu(props: Props) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const close = () => {
    setOpen(false);
    box.current?.querySelector("button")?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const elsewhere = (event: Event) => {
      if (!event.composedPath().includes(box.current!)) setOpen(false);
    };
    document.addEventListener("pointerdown", elsewhere);
    box.current?.querySelector<HTMLElement>(".menu button:not(:disabled), .menu input, .menu select")?.focus();
    return () => document.removeEventListener("pointerdown", elsewhere);
  }, [open]);
  return (
    <div
      class={`menu-box ${props.class ?? ""}`}
      ref={box}
      onKeyDown={(event) => open && keys(event, box.current!, close)}
    >
      <Button
        small
        kind={props.kind}
        aria-haspopup={props.items ? "menu" : "dialog"}
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        aria-label={props.name}
        onClick={() => setOpen(!open)}
      >
        {props.label}
      </Button>
      {open && props.items && (
        <ul class="menu" id={id} role="menu">
          {props.items.map((item, i) => (
            <li key={i} role="none">
              <button
                type="button"
                role="menuitem"
                disabled={item.disabled}
                onClick={() => {
                  close();
                  item.run();
                }}
              >
                <span>{item.label}</span>
                {item.hint && <span class="faint small">{item.hint}</span>}
              </button>
            </li>
          ))}
        </ul>
      )}
      {open && !props.items && (
        <div class="menu menu-panel" id={id} role="dialog" aria-label={props.name}>
          {props.children?.(close)}
        </div>
      )}
    </div>
  );
}

function keys(event: KeyboardEvent, box: HTMLElement, close: () => void): void {
  if (event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    close();
  }
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const list = [...box.querySelectorAll<HTMLElement>(".menu [role=menuitem]:not(:disabled)")];
  if (!step || list.length === 0) return;
  event.preventDefault();
  const at = list.indexOf(document.activeElement as HTMLElement);
  list[(at + step + list.length) % list.length]?.focus();
}
