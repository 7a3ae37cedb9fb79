/** Light, dark, or what the system says. */
import { readStored, writeStored } from "./hooks";

export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];
const listeners = new Set<() => void>();

export function theme(): Theme {
  const found = readStored<string>("theme", "system");
  return found === "light" || found === "dark" ? found : "system";
}

export function applyTheme(next: Theme = theme()): void {
  writeStored("theme", next);
  if (next === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = next;
  for (const tell of listeners) tell();
}

/** Be told when colours change; what is drawn on a canvas has to be drawn anew. */
export function onTheme(tell: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  listeners.add(tell);
  system.addEventListener("change", tell);
  return () => {
    listeners.delete(tell);
    system.removeEventListener("change", tell);
  };
}

/** A colour of the page, such as `--accent`, as it is now. */
export function cssColour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
