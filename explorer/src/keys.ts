/** Keyboard shortcuts. Those without a modifier do nothing while somebody types. */
import { useLayoutEffect } from "preact/hooks";
import { useEvent } from "./hooks";

export interface Shortcut {
  readonly keys: string; // "?", "g q", "mod+Enter"
  readonly what: string;
  readonly group: string;
}

interface Offered extends Shortcut {
  readonly run: () => void;
}

let offered: readonly Offered[] = []; // of two with the same keys the later counts
let pending = "";
let pendingAt = 0;
const SEQUENCE_MILLISECONDS = 1200;

export const isMac = /Mac|iP(hone|ad)/.test(navigator.userAgent);

/** Offer a shortcut while the component is shown, from the moment it is: an effect after painting misses fast keys. */
export function useShortcut(keys: string, what: string, group: string, run: () => void, enabled = true): void {
  const latest = useEvent(run);
  useLayoutEffect(() => {
    if (!enabled) return;
    const own: Offered = { keys, what, group, run: latest };
    offered = [...offered, own];
    return () => {
      offered = offered.filter((other) => other !== own);
    };
  }, [keys, what, group, enabled]);
}

export function shortcuts(): Shortcut[] {
  return offered.filter((one) => one === found(one.keys));
}

export function keyLabel(keys: string): string {
  return keys
    .replace(/(?<=\+)[a-z]$/, (letter) => letter.toUpperCase())
    .replace("mod", isMac ? "⌘" : "Ctrl")
    .replace("+", " + ")
    .replace("Enter", "↵");
}

export function listen(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const wanted = matching(event);
    if (!wanted) return;
    event.preventDefault();
    pending = "";
    wanted.run();
  });
}

function found(keys: string): Offered | undefined {
  return offered.findLast((one) => one.keys === keys);
}

function matching(event: KeyboardEvent): Offered | undefined {
  const mod = isMac ? event.metaKey : event.ctrlKey;
  if (mod) return found(`mod+${event.key}`);
  if (event.altKey || event.metaKey || event.ctrlKey || isTyping(event)) return undefined;
  const sequence = Date.now() - pendingAt < SEQUENCE_MILLISECONDS ? `${pending} ${event.key}` : "";
  pending = event.key;
  pendingAt = Date.now();
  return found(sequence) ?? found(event.key);
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}
