/** A first query for a graph nobody has asked anything yet. */
import type { Catalog } from "../../api";
import { edgeWord } from "../../canvas/source";

export function exampleQuery(catalog: Catalog): string {
  const edge = [...catalog.edges].sort(
    (a, b) => Number(b.count > 0) - Number(a.count > 0) || Number(a.from === a.to) - Number(b.from === b.to),
  )[0];
  if (edge) return queryText([`$a: ${edge.from}`, `$a ${edgeWord(edge.name)} $b`], "$a, $b");
  const node = [...catalog.nodes].sort((a, b) => b.count - a.count)[0];
  return node ? queryText([`$n: ${node.name}`], "$n") : "";
}

/** All nodes of a type, with their properties. */
export function sampleQuery(type: string): string {
  return queryText([`$n: ${type}`], "$n.*");
}

function queryText(clauses: string[], columns: string): string {
  return [
    "query explore() {",
    "  match {",
    ...clauses.map((clause) => `    ${clause}`),
    "  }",
    `  return { ${columns} }`,
    "  limit 60",
    "}",
    "",
  ].join("\n");
}
