/** The lanes beside the list of commits. For eyes only: the list says the same in words. */
import { useMemo } from "preact/hooks";
import type { Commit } from "../../api";
import { PALETTE } from "../../canvas/look";
import { lanesOf, pathOf } from "./lanes";

export const ROW_PIXELS = 40;
const LANE_PIXELS = 18;
const DOT = 5;

interface Props {
  readonly commits: readonly Commit[];
  readonly parents: Readonly<Record<string, readonly string[]>>;
  readonly chosen: string | undefined;
}

export function Drawing({ commits, parents, chosen }: Props) {
  const { lane, lines, width } = useMemo(() => lanesOf(commits, parents), [commits, parents]);
  const x = (n: number) => LANE_PIXELS * (n + 0.75);
  const y = (row: number) => ROW_PIXELS * (row + 0.5);
  const colour = (n: number) => PALETTE[n % PALETTE.length];
  return (
    <svg class="lanes" width={x(width - 1) + LANE_PIXELS} height={ROW_PIXELS * commits.length} aria-hidden="true">
      {lines.map((line, i) => (
        <path
          key={i}
          d={pathOf(line, x, y)}
          fill="none"
          stroke={colour(Math.max(line.fromLane, line.toLane))}
          stroke-width="2"
          stroke-dasharray={line.early ? "4 3" : undefined}
        />
      ))}
      {commits.map((commit, row) => {
        const n = lane[row] ?? 0;
        const merge = (parents[commit.graph_commit_id] ?? []).length > 1;
        return (
          <circle
            key={commit.graph_commit_id}
            cx={x(n)}
            cy={y(row)}
            r={commit.graph_commit_id === chosen ? DOT + 2 : DOT}
            class={merge ? "dot-merge" : undefined}
            fill={merge ? undefined : colour(n)}
            stroke={colour(n)}
            stroke-width="2"
          />
        );
      })}
    </svg>
  );
}
