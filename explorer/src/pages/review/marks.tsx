/** Small signs of proposals: their state, people, times and commits. */
import type { ComponentChildren } from "preact";
import { ago, shortCommit, visible, when } from "../../format";
import { href } from "../../router";
import { micros, type ProposalState } from "../../reviews";
import { Badge } from "../../ui/basics";

type Tone = "plain" | "good" | "warn" | "bad" | "accent";

export const STATES: Record<ProposalState, { word: string; tone: Tone; sign: string }> = {
  open: { word: "Open", tone: "accent", sign: "○" },
  changes_wanted: { word: "Changes wanted", tone: "warn", sign: "±" },
  approved: { word: "Approved", tone: "good", sign: "✓" },
  merged: { word: "Merged", tone: "accent", sign: "⇥" },
  closed: { word: "Closed", tone: "plain", sign: "✕" },
};

export function StateBadge({ state }: { state: ProposalState }) {
  const { word, tone, sign } = STATES[state];
  return (
    <Badge tone={tone}>
      <span aria-hidden="true">{sign}</span> {word}
    </Badge>
  );
}

/** A sign for whether something is well; the word is for those who do not see it. */
export function Sign({ tone, word }: { tone: "good" | "bad" | "warn" | "plain"; word: string }) {
  const sign = { good: "✓", bad: "✕", warn: "!", plain: "•" }[tone];
  return (
    <span class={`sign sign-${tone}`} title={word}>
      <span aria-hidden="true">{sign}</span>
      <span class="hidden-visually">{word}: </span>
    </span>
  );
}

export function Person({ name }: { name: string | null }) {
  return <strong class="person">{visible(name ?? "nobody")}</strong>;
}

/** The first letter of a name, in a colour that belongs to it. */
export function Avatar({ name }: { name: string | null }) {
  const text = name ?? "?";
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  const first = visible([...text][0] ?? "?").slice(0, 1);
  return (
    <span class="avatar" aria-hidden="true" style={{ "--hue": String(sum) }}>
      {first.toUpperCase()}
    </span>
  );
}

export function Ago({ time }: { time: string }) {
  const at = micros(time);
  return (
    <time dateTime={time} title={when(at)} class="muted">
      {ago(at)}
    </time>
  );
}

export function CommitLink({ id, children }: { id: string; children?: ComponentChildren }) {
  return (
    <a class="mono" href={href({ page: "history", params: { commit: id } })} title={id}>
      {children ?? shortCommit(id)}
    </a>
  );
}

export function BranchName({ name }: { name: string }) {
  return <code class="branch-name">{visible(name)}</code>;
}
