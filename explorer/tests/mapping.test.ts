import { describe, expect, it } from "vitest";
import { branchNameFor, formatOf, guessMapping, guessType, missingOf, twiceOf } from "../src/pages/import/mapping";
import { CATALOG } from "./catalog";

const [person] = CATALOG.nodes;
const [knows] = CATALOG.edges;

describe("columns", () => {
  it("fill the properties they are called like, whatever the case", () => {
    expect(guessMapping(["Name", "AGE", "shoe size"], person!)).toEqual({
      Name: "name",
      AGE: "age",
      "shoe size": null,
    });
    expect(guessMapping(["source", "Target", "since"], knows!)).toEqual({
      source: "from",
      Target: "to",
      since: "since",
    });
  });

  it("fill nothing twice, and what is missing is said", () => {
    expect(guessMapping(["name", "NAME"], person!)).toEqual({ name: "name", NAME: null });
    expect(missingOf({ name: "name" }, person!)).toEqual(["age"]);
    expect(twiceOf({ a: "name", b: "name", c: null, d: null })).toEqual(["name"]);
  });

  it("tell the type that fits best, or none", () => {
    expect(guessType(["name", "age"], CATALOG)?.name).toBe("Person");
    expect(guessType(["src", "dst", "since"], CATALOG)?.kind).toBe("edge");
    expect(guessType(["x", "y"], CATALOG)).toBeUndefined();
  });
});

describe("files", () => {
  it("are known by their endings", () => {
    expect(["a.CSV", "b.jsonl", "c.pq", "d.txt", "noending"].map(formatOf)).toEqual([
      "csv",
      "ndjson",
      "parquet",
      null,
      null,
    ]);
  });

  it("name a branch that any store takes", () => {
    expect(branchNameFor("New People (final).csv", new Date("2026-11-15T12:00:00Z"))).toBe(
      "import-new-people-final-2026-11-15",
    );
    expect(branchNameFor("<>.csv", new Date("2026-11-15T12:00:00Z"))).toBe("import-file-2026-11-15");
  });
});
