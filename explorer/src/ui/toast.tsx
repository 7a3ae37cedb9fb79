/** Short messages that come and go. */
import { useEffect, useState } from "preact/hooks";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "good" | "bad";
}

const SHOWN_MILLISECONDS = 6000;
let toasts: readonly Toast[] = [];
let last = 0;
let tell: () => void = () => {};

export function toast(text: string, tone: Toast["tone"] = "good"): void {
  const id = ++last;
  toasts = [...toasts, { id, text, tone }];
  tell();
  setTimeout(() => dismiss(id), SHOWN_MILLISECONDS);
}

function dismiss(id: number): void {
  toasts = toasts.filter((t) => t.id !== id);
  tell();
}

export function Toasts() {
  const [, setRound] = useState(0);
  useEffect(() => {
    tell = () => setRound((n) => n + 1);
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map((one) => (
        <div key={one.id} class={`toast toast-${one.tone}`}>
          <span>{one.text}</span>
          <button type="button" aria-label="Dismiss" onClick={() => dismiss(one.id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
