import { describe, expect, it } from "vitest";
import { formatRoute, parseRoute, resolve } from "../src/router";

describe("the address", () => {
  it("survives a round trip, whatever it holds", () => {
    const route = {
      graph: "films",
      page: "query" as const,
      branch: "feature/α&β=?#",
      at: "2026-11-01T00:00:00Z",
      params: { q: 'query q() { match { $n: T { a: "#?&=%" } } return { $n } }\n', p: '{"x":"<b>"}' },
    };
    expect(parseRoute(formatRoute(route))).toEqual(route);
  });

  it("leaves out what is the rule", () => {
    expect(formatRoute(parseRoute("#/films/schema?branch=main"))).toBe("#/films/schema");
  });

  it("falls back to the first page and to main", () => {
    expect(parseRoute("#/films/no-such-page")).toMatchObject({ page: "home", branch: "main", at: null });
    expect(parseRoute("")).toMatchObject({ graph: "" });
    expect(parseRoute("#/%E0%A4%A")).toMatchObject({ graph: "%E0%A4%A" });
  });

  it("keeps the place when the page changes, and drops the point in time when the branch does", () => {
    const here = parseRoute("#/films/query?branch=draft&at=abc.1&q=x");
    expect(resolve(here, { page: "schema" })).toMatchObject({ branch: "draft", at: "abc.1", params: {} });
    expect(resolve(here, { branch: "main" })).toMatchObject({ branch: "main", at: null, params: { q: "x" } });
    expect(resolve(here, { graph: "books" })).toMatchObject({ branch: "main", at: null, params: {} });
  });
});
