/** Values, ids, counts and times as people read them. Always text: whoever shows it cannot be made to run it. */
import type { Commit, Json } from "./api";

const WHOLE = new Intl.NumberFormat("en");
const WHEN = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
const AGO = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const LIST_SHOWN = 6;

export function count(value: number): string {
  return WHOLE.format(value);
}

/** “1 node”, “3 nodes”. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Characters that are not seen, or that turn the text around them: what is stored has to look like what it is. */
const UNSEEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Text as it may be shown: what nobody would see stands there by its number. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (found) => `⟨U+${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** One value on one line. */
export function valueText(value: Json | undefined): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return visible(value);
  if (Array.isArray(value) && value.length > LIST_SHOWN && value.every((v) => typeof v === "number")) {
    return `[${value.slice(0, 3).join(", ")}, … ${count(value.length)} numbers]`;
  }
  return typeof value === "object" ? visible(JSON.stringify(value)) : String(value);
}

/** How much of something is done: 100 % only when nothing is left. */
export function share(done: number, all: number): string {
  if (done >= all) return "100%";
  const percent = (100 * done) / all;
  return `${percent > 99 ? Math.min(99.9, Math.floor(percent * 10) / 10) : Math.round(percent)}%`;
}

export function isNumeric(value: Json | undefined): boolean {
  return typeof value === "number";
}

export function shortCommit(id: string): string {
  return id.length > 20 ? `${id.slice(0, 18)}…` : id;
}

export function branchOf(commit: Commit): string {
  return commit.graph_branch ?? "main";
}

export function when(micros: number): string {
  return WHEN.format(new Date(micros / 1000));
}

export function ago(micros: number, now = Date.now()): string {
  const seconds = Math.round((micros / 1000 - now) / 1000);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return AGO.format(Math.trunc(seconds / size), unit);
  }
  return "just now";
}

export function bytes(size: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  for (; size >= 1000 && power < units.length - 1; power++) size /= 1000;
  return `${power && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[power]}`;
}

export function seconds(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
