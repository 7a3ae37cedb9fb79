import { describe, expect, it } from "vitest";
import type { Commit } from "../src/api";
import { lanesOf, pathOf } from "../src/pages/history/lanes";

function commit(id: string, branch: string | null = null): Commit {
  return {
    graph_commit_id: id,
    graph_branch: branch,
    graph_manifest_version: 0,
    parent_commit_id: null,
    merged_parent_commit_id: null,
    actor_id: null,
    created_at: 0,
    kind: "mutation",
    message: null,
    changes: [],
  };
}

describe("lanes", () => {
  it("keep main to the left and give a branch a lane until its fork", () => {
    const commits = [commit("m3"), commit("b2", "draft"), commit("m2"), commit("b1", "draft"), commit("m1")];
    const parents = { m3: ["m2"], b2: ["b1"], m2: ["m1"], b1: ["m1"], m1: [] };
    const { lane, lines, width } = lanesOf(commits, parents);
    expect(lane).toEqual([0, 1, 0, 1, 0]);
    expect(width).toBe(2);
    expect(lines).toContainEqual({ fromLane: 1, fromRow: 3, toLane: 0, toRow: 4, early: false, open: false });
  });

  it("are used again when a branch has ended", () => {
    const commits = [commit("x1", "later"), commit("m2"), commit("y1", "earlier"), commit("m1")];
    const { lane } = lanesOf(commits, { x1: ["m2"], m2: ["m1"], y1: ["m1"], m1: [] });
    expect(lane).toEqual([1, 0, 1, 0]);
  });

  it("show a merge as a line that leaves at once, and a parent on the next page as an open end", () => {
    const commits = [commit("m2"), commit("b1", "draft")];
    const { lines } = lanesOf(commits, { m2: ["m1", "b1"], b1: ["m0"] });
    expect(lines.map(({ early, open }) => [early, open])).toEqual([
      [false, true],
      [true, false],
      [false, true],
    ]);
  });

  it("are drawn within the rows", () => {
    const line = { fromLane: 1, fromRow: 0, toLane: 0, toRow: 2, early: false, open: false };
    expect(
      pathOf(
        line,
        (n) => n * 10,
        (n) => n * 20,
      ),
    ).toBe("M10 0V20C10 32 0 28 0 40");
  });
});
