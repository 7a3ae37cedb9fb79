import { describe, expect, it } from "vitest";
import { offersForQuery, typesOfVariables } from "../src/lang/complete";
import { nodeColumns } from "../src/lang/columns";
import { drawingQueries, matchesOf } from "../src/lang/drawing";
import { queriesOf, queryAtOffset } from "../src/lang/queries";
import { statementsOf } from "../src/lang/statements";
import { tokenize } from "../src/lang/tokens";
import { CATALOG } from "./catalog";

const TWO = `// first { not a brace
query a($x: String) { match { $p: Person { name: $x } $p knows $q } return { $p.name as name, $q } order { name } limit 5 }
query b() { match { $p: Person $p livesIn $c } return { $c.name as city, count(*) as n } }`;

function only(text: string) {
  return queriesOf(text)[0]!;
}

describe("settings and statements", () => {
  it("finds the query below settings", () => {
    const [found] = queriesOf("set rows_max = 5;\nreset all;\nquery q() { match { $p: Person } return { $p.name } }");
    expect(found?.name).toBe("q");
    expect(found?.branches).toHaveLength(1);
    expect(queriesOf("set engine = v2; match { $p: Person } return { $p.name }")[0]?.bare).toBe(true);
    expect(queriesOf("explain query e() { match { $p: Person } return { $p.name } }")[0]?.name).toBe("e");
  });
  it("tells statements that change branches from those that read", () => {
    const changes = (text: string) => queriesOf(text).map((found) => found.mutation);
    expect(changes("show all;")).toEqual([false]);
    expect(changes("branch list")).toEqual([false]);
    expect(changes("reset merge_lineage; branch merge draft into main;")).toEqual([true]);
    expect(changes("branch create draft")).toEqual([true]);
  });
});

describe("Cypher", () => {
  it("is told from the query language, and taken whole", () => {
    for (const text of ["MATCH (p:Person) RETURN p", "// friends\nmatch p = (a)-->(b) return p", "RETURN 1 AS one"]) {
      expect(queriesOf(text)).toMatchObject([{ name: "cypher", bare: true, mutation: false, branches: [] }]);
    }
    expect(queriesOf("match { $p: Person } return { $p }")[0]?.name).toBe("q");
    expect(queriesOf("/* never closed")).toEqual([]);
  });
  it("writes where a clause says so, and not where a word or a text does", () => {
    const writes = (text: string) => queriesOf(text)[0]?.mutation;
    expect(writes("MATCH (p:Person {name: 'Ada'}) SET p.age = 1")).toBe(true);
    expect(writes("CREATE (:Person {name: 'Ada'})")).toBe(true);
    expect(writes("MATCH (p:Person) WHERE p.name = 'SET x' RETURN p.delete, $set // CREATE")).toBe(false);
  });
});

describe("tokens", () => {
  it("come to an end for any text", () => {
    for (const text of ['"never closed', "/* never closed", "$", "@", "\u0000é🦊", '"\\', "{{{{"]) {
      expect(tokenize(text, true).at(-1)?.end).toBe(text.length);
    }
  });

  it("know a brace from one in a comment or a text", () => {
    expect(tokenize('"{" // {\n/* { */ {').filter((t) => t.text === "{")).toHaveLength(1);
  });
});

describe("queries", () => {
  it("are found with their names, parts and places", () => {
    const [a, b] = queriesOf(TWO);
    expect([a!.name, b!.name]).toEqual(["a", "b"]);
    expect(a!.header).toBe("query a($x: String)");
    expect(a!.tail).toBe("order { name } limit 5");
    expect(a!.branches[0]!.grouped).toBe(false);
    expect(b!.branches[0]!.grouped).toBe(true);
    expect(queryAtOffset(TWO, TWO.indexOf("livesIn"))?.name).toBe("b");
  });

  it("tell walks from comparisons", () => {
    const walks = (clauses: string) => only(`query q() { match { ${clauses} } return { $a } }`).branches[0]!.traversals;
    expect(walks("$a: Person $a.age < $b.age $a.name contains $x")).toEqual([]);
    expect(walks("$a <knows|follows>{1,3} $b")).toMatchObject([
      { edges: ["knows", "follows"], undirected: true, hops: "{1,3}" },
    ]);
    expect(walks("$a $e:(knows|follows) $b")).toMatchObject([{ edgeVariable: "$e", edges: ["knows", "follows"] }]);
    expect(walks("$w = path $a knows{1,5} $b")).toMatchObject([{ path: "$w", from: "$a", to: "$b" }]);
    expect(walks("not { $a knows $b } optional { $a livesIn $c }")).toMatchObject([{ edges: ["livesIn"] }]);
  });

  it("may be a body alone", () => {
    const text = "// people\nmatch { $p: Person $p livesIn $c } return { $p, $c } limit 3";
    expect(only(text)).toMatchObject({ name: "q", bare: true, mutation: false, tail: "limit 3" });
    expect(queryAtOffset(text, 20)?.branches[0]?.traversals).toHaveLength(1);
    expect(drawingQueries(only(text))[0]!.text).toMatch(/^query q\(\) \{ match \{ \$p: Person .* limit 3 \}$/);
    const change = 'update Person set { age: 3 } where name = "a"';
    expect(only(change).mutation).toBe(true);
    expect(statementsOf(change, "q")).toMatchObject([{ sign: "~", type: "Person", what: 'where name = "a"' }]);
    expect(queriesOf("")).toEqual([]);
  });

  it("say whether they change something, and what", () => {
    const text =
      'query c($n: String) { insert Person { name: $n }, { name: "b" } update Person set { age: 3 } where name = $n delete City where name = "x" }';
    expect(only(text).mutation).toBe(true);
    expect(statementsOf(text, "c").map((s) => `${s.sign} ${s.type} ${s.what}`)).toEqual([
      "+ Person 2 rows",
      "~ Person where name = $n",
      '− City where name = "x"',
    ]);
  });
});

describe("drawing", () => {
  it("keeps the rows of a plain query: its columns, order and limit", () => {
    const [drawn] = drawingQueries(only(TWO));
    expect(drawn!.text).toContain("order { name } limit 5");
    expect(drawn!.text).toContain("$p.name as name, $q, $p as og_n0, type($p) as og_t0, $q as og_n1");
  });

  it("draws the matches behind groups, within bounds", () => {
    const [drawn] = drawingQueries(queriesOf(TWO)[1]!);
    expect(drawn!.text).toMatch(/return distinct \{ \$p as og_n0.* limit 1000 \}$/);
    expect(drawn!.text).not.toContain("count(*)");
  });

  it("gives one query for each branch of a union", () => {
    const union = only(
      "query u() { match { $p: Person } return { $p } union all match { $c: City } return { $c } order { p } }",
    );
    expect(drawingQueries(union).map((d) => d.variables)).toEqual([["$p"], ["$c"]]);
  });

  it("knows the direction of an edge, whichever way it was walked", () => {
    const [drawn] = drawingQueries(only("query q() { match { $c: City $c livesIn $p } return { $c } }"));
    const { nodes, edges } = matchesOf(
      drawn!,
      [{ og_n0: "Oslo", og_t0: "City", og_n1: "Ada", og_t1: "Person" }],
      CATALOG,
    );
    expect(nodes).toHaveLength(2);
    expect(edges).toMatchObject([{ type: "LivesIn", from: { id: "Ada" }, to: { id: "Oslo" } }]);
  });

  it("leaves out what an optional block did not find", () => {
    const [drawn] = drawingQueries(
      only("query q() { match { $p: Person optional { $p $e:livesIn $c } } return { $p } }"),
    );
    const { nodes, edges } = matchesOf(
      drawn!,
      [{ og_n0: "Ada", og_t0: "Person", og_n1: null, og_t1: null, og_e0: null }],
      CATALOG,
    );
    expect(nodes).toEqual([{ type: "Person", id: "Ada" }]);
    expect(edges).toEqual([]);
  });

  it("follows a path over its stops", () => {
    const [drawn] = drawingQueries(only("query q() { match { $a: Person $w = path $a knows{1,3} $b } return { $w } }"));
    const row = { og_n0: "a", og_t0: "Person", og_n1: "c", og_t1: "Person", og_p0: ["a", "b", "c"] };
    const { nodes, edges } = matchesOf(drawn!, [row], CATALOG);
    expect(nodes.map((n) => n.id)).toEqual(["a", "c", "b"]);
    expect(edges.map((e) => `${e.from.id}${e.to.id}`)).toEqual(["ab", "bc"]);
  });
});

describe("columns", () => {
  it("that are whole nodes are known with their types", () => {
    const columns = (text: string) => Object.fromEntries(nodeColumns(only(text), CATALOG));
    expect(columns("match { $p: Person $p livesIn $c } return { $p, $c as city, $p.name, count(*) as n }")).toEqual({
      p: "Person",
      city: "City",
    });
    expect(columns("match { $p: Person $p $e:knows $q } return { $e, coalesce($p, $q) as x }")).toEqual({});
  });
});

describe("completion", () => {
  const offered = (text: string) => {
    const at = text.indexOf("|");
    return offersForQuery(text.replace("|", ""), at, CATALOG)?.options.map((o) => o.label) ?? [];
  };

  it("offers types, properties, edges and variables where they fit", () => {
    expect(offered("query q() { match { $p: |")).toEqual(["Person", "City"]);
    expect(offered("query q() { match { $p: Person } return { $p.| } }")).toEqual(["name", "age", "id"]);
    expect(offered("query q() { match { $p: Person $p livesIn $c $c.| } }")).toEqual(["name", "id"]);
    expect(offered("query q() { match { $c: City $c |").slice(0, 1)).toEqual(["livesIn"]);
    expect(offered("query q() { match { $p: Person { |")).toEqual(["name", "age"]);
    expect(offered("query q($x: |")).toContain("String");
    expect(offered("query q() { insert |")).toEqual(["Person", "City", "Knows", "LivesIn"]);
    expect(offered("query q($who: String) { match { $|")).toContain("$who");
  });

  it("stays silent in comments and texts", () => {
    expect(offered("// $p|")).toEqual([]);
    expect(offered('query q() { match { $p.name = "a|')).toEqual([]);
  });

  it("follows walks to the types of their ends", () => {
    const types = typesOfVariables("$p livesIn $c $q $e:knows $p", CATALOG);
    expect(Object.fromEntries(types)).toEqual({ $p: "Person", $c: "City", $q: "Person", $e: "Knows" });
  });
});
