import { describe, expect, it } from "vitest";
import type { Conflict } from "../src/api";
import {
  byRow,
  choiceOf,
  decide,
  decideType,
  documentOf,
  joined,
  typed,
  UNDECIDED,
} from "../src/pages/review/decisions";

function conflict(id: string, field: string | null = null, type = "Film"): Conflict {
  return {
    entity_kind: "node",
    type_name: type,
    entity_id: id,
    kind: "divergent_update",
    message: "",
    field,
    base: 1,
    ours: 2,
    theirs: 3,
  };
}

const [year, rating, row] = [conflict("A", "year"), conflict("A", "rating"), conflict("B")];

describe("decisions", () => {
  it("of a field count more than those of its type", () => {
    const made = decide(decideType(UNDECIDED, "Film", "ours"), year, "theirs");
    expect(choiceOf(made, year)).toBe("theirs");
    expect(choiceOf(made, rating)).toBe("ours");
    expect(choiceOf(made, conflict("X", null, "Person"))).toBeUndefined();
  });

  it("become the document the server takes", () => {
    const made = decide(decide(decide(UNDECIDED, year, { value: 1996 }), rating, "theirs"), row, "ours");
    expect(documentOf(made)).toEqual({
      resolutions: [
        { type: "Film", id: "A", field: "year", value: 1996 },
        { type: "Film", id: "A", field: "rating", take: "theirs" },
        { type: "Film", id: "B", take: "ours" },
      ],
    });
    expect(documentOf(decideType(UNDECIDED, "Film", "theirs"))).toEqual({ strategy: { Film: "theirs" } });
    expect(documentOf(decide(decide(UNDECIDED, row, "ours"), row, null))).toEqual({});
  });

  it("are made row by row, and what a dry run brings up is added once", () => {
    expect(byRow([year, rating, row]).map((one) => [one.id, one.conflicts.length])).toEqual([
      ["A", 2],
      ["B", 1],
    ]);
    expect(joined([year, row], [row, rating])).toEqual([year, row, rating]);
  });

  it("take what was typed as the kind of value it stands beside", () => {
    expect([typed("1996", 1997), typed("1996", "x"), typed("true", false), typed("not json", 3)]).toEqual([
      1996,
      "1996",
      true,
      "not json",
    ]);
  });
});
