/** Keyboard shortcuts. Those without a modifier do nothing while somebody types. */
import { useEffect } from "preact/hooks";
import { useEvent } from "./hooks";

export interface Shortcut {
  readonly keys: string; // "?", "g q", "mod+Enter"
  readonly what: string;
  readonly group: string;
}

const known = new Map<string, Shortcut & { run: () => void }>();
let pending = "";
let pendingAt = 0;
const SEQUENCE_MILLISECONDS = 1200;

export const isMac = /Mac|iP(hone|ad)/.test(navigator.userAgent);

/** Offer a shortcut while the component is shown. */
export function useShortcut(keys: string, what: string, group: string, run: () => void, enabled = true): void {
  const latest = useEvent(run);
  useEffect(() => {
    if (!enabled) return;
    known.set(keys, { keys, what, group, run: latest });
    return () => void known.delete(keys);
  }, [keys, what, group, enabled]);
}

export function shortcuts(): Shortcut[] {
  return [...known.values()];
}

export function keyLabel(keys: string): string {
  return keys.replace("mod", isMac ? "⌘" : "Ctrl").replace("+", " + ").replace("Enter", "↵");
}

export function listen(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const found = matching(event);
    if (!found) return;
    event.preventDefault();
    pending = "";
    found.run();
  });
}

function matching(event: KeyboardEvent): { run: () => void } | undefined {
  const mod = isMac ? event.metaKey : event.ctrlKey;
  if (mod) return known.get(`mod+${event.key}`);
  if (event.altKey || event.metaKey || event.ctrlKey || isTyping(event)) return undefined;
  const sequence = Date.now() - pendingAt < SEQUENCE_MILLISECONDS ? `${pending} ${event.key}` : "";
  pending = event.key;
  pendingAt = Date.now();
  return known.get(sequence) ?? known.get(event.key);
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}
