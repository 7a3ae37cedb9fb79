/** The commits of all branches as lanes: where each dot is, and the lines between them. Pure, so that it is tested as such. */
import type { Commit } from "../../api";
import { branchOf } from "../../format";

export interface Lanes {
  readonly lane: readonly number[]; // of each commit
  readonly lines: readonly Line[];
  readonly width: number; // how many lanes there are
}

/** From a commit to a parent, in lanes and rows. A merge leaves its own lane at once, everything else at the end. */
export interface Line {
  readonly fromLane: number;
  readonly fromRow: number;
  readonly toLane: number;
  readonly toRow: number;
  readonly early: boolean;
  readonly open: boolean; // the parent is further down, on a page not yet read
}

interface Stretch {
  readonly branch: string;
  first: number;
  last: number;
}

/** `commits` newest first; `parents` says to which of them lines lead. */
export function lanesOf(commits: readonly Commit[], parents: Readonly<Record<string, readonly string[]>>): Lanes {
  const rowOf = new Map(commits.map((commit, row) => [commit.graph_commit_id, row]));
  const laneOfBranch = assign(stretches(commits, parents, rowOf));
  const lane = commits.map((commit) => laneOfBranch.get(branchOf(commit)) ?? 0);
  const lines: Line[] = [];
  commits.forEach((commit, row) => {
    (parents[commit.graph_commit_id] ?? []).forEach((parent, place) => {
      const found = rowOf.get(parent);
      const fromLane = lane[row] ?? 0;
      const toLane = found === undefined ? fromLane : (lane[found] ?? 0);
      lines.push({
        fromLane,
        fromRow: row,
        toLane,
        toRow: found ?? commits.length,
        early: place > 0,
        open: found === undefined,
      });
    });
  });
  return { lane, lines, width: Math.max(1, ...lane.map((n) => n + 1)) };
}

/** From which row to which a branch needs a lane: down to the commit it was forked from. */
function stretches(
  commits: readonly Commit[],
  parents: Readonly<Record<string, readonly string[]>>,
  rowOf: ReadonlyMap<string, number>,
): Stretch[] {
  const found = new Map<string, Stretch>();
  commits.forEach((commit, row) => {
    const branch = branchOf(commit);
    const stretch = found.get(branch) ?? { branch, first: row, last: row };
    const first = parents[commit.graph_commit_id]?.[0];
    stretch.last = Math.max(stretch.last, row, first === undefined ? row : (rowOf.get(first) ?? commits.length));
    found.set(branch, stretch);
  });
  return [...found.values()];
}

/** Main keeps the first lane for itself; the others take the first that is free where they need it. */
function assign(found: readonly Stretch[]): Map<string, number> {
  const lanes = new Map<string, number>([["main", 0]]);
  const busy: Stretch[][] = [[]];
  for (const stretch of found.filter((s) => s.branch !== "main").sort((a, b) => a.first - b.first)) {
    let lane = 1;
    while (busy[lane]?.some((other) => other.first <= stretch.last && stretch.first <= other.last)) lane++;
    (busy[lane] ??= []).push(stretch);
    lanes.set(stretch.branch, lane);
  }
  return lanes;
}

/** The SVG path of a line. */
export function pathOf(line: Line, x: (lane: number) => number, y: (row: number) => number): string {
  const [x1, y1, x2, y2] = [x(line.fromLane), y(line.fromRow), x(line.toLane), y(line.toRow)];
  if (x1 === x2) return `M${x1} ${y1}V${y2}`;
  const bend = Math.min(y(1) - y(0), y2 - y1);
  if (line.early) return `M${x1} ${y1}C${x1} ${y1 + bend * 0.6} ${x2} ${y1 + bend * 0.4} ${x2} ${y1 + bend}V${y2}`;
  return `M${x1} ${y1}V${y2 - bend}C${x1} ${y2 - bend * 0.4} ${x2} ${y2 - bend * 0.6} ${x2} ${y2}`;
}
