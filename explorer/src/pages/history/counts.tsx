/** How much was added, changed and removed: signs first, colours second. */
import type { TypeCounts } from "../../api";
import { count } from "../../format";

export function Counts({ counts }: { counts: readonly TypeCounts[] }) {
  const sum = (name: "inserted" | "updated" | "deleted") => counts.reduce((total, one) => total + one[name], 0);
  const parts = [
    { sign: "+", tone: "added", word: "added", n: sum("inserted") },
    { sign: "~", tone: "changed", word: "changed", n: sum("updated") },
    { sign: "−", tone: "removed", word: "removed", n: sum("deleted") },
  ].filter((part) => part.n > 0);
  if (parts.length === 0) return null;
  return (
    <span class="counts">
      {parts.map(({ sign, tone, word, n }) => (
        <span key={sign} class={`count-${tone}`} title={`${count(n)} ${word}`}>
          <span class="hidden-visually">
            {word} {count(n)}
          </span>
          <span aria-hidden="true">
            {sign}
            {count(n)}
          </span>
        </span>
      ))}
    </span>
  );
}
