/** First queries for a graph nobody has asked anything yet, made from its schema. */
import type { Catalog, EdgeInfo, NodeInfo } from "../../api";
import { edgeWord } from "../../canvas/source";

const SAMPLE_COLUMNS = 12;

export interface Example {
  readonly title: string;
  readonly text: string;
  readonly view: "graph" | "table";
}

export function exampleQuery(catalog: Catalog): string {
  return examplesOf(catalog)[0]?.text ?? "";
}

/** What one would ask first: how things hang together, what there is, what is at the top, who is connected most. */
export function examplesOf(catalog: Catalog): Example[] {
  const edges = [...catalog.edges].sort(
    (a, b) => Number(b.count > 0) - Number(a.count > 0) || Number(a.from === a.to) - Number(b.from === b.to),
  );
  const nodes = [...catalog.nodes].sort((a, b) => b.count - a.count);
  const [edge, node] = [edges[0], nodes[0]];
  return [
    ...(edge ? [connected(edge)] : []),
    ...(node ? [listed(node)] : []),
    ...(node ? ranked(node) : []),
    ...(edge ? [counted(edge, nodes)] : []),
    ...walked(edges),
  ];
}

function connected(edge: EdgeInfo): Example {
  const same = edge.from === edge.to;
  const title = same ? `How one ${edge.from} leads to another` : `How ${edge.from} and ${edge.to} are connected`;
  const body = queryText([`$a: ${edge.from}`, `$a ${edgeWord(edge.name)} $b`], "$a, $b", "limit 60");
  return { title, text: body, view: "graph" };
}

function listed(node: NodeInfo): Example {
  return { title: `All about ${node.name}`, text: sampleQuery(node), view: "table" };
}

function ranked(node: NodeInfo): Example[] {
  const number = node.properties.find((p) => /^[IUF]\d+$/.test(p.type));
  if (!number) return [];
  const named = [...new Set([node.key[0] ?? "id", number.name])].map((name) => `$n.${name} as ${name}`).join(", ");
  const tail = `order { $n.${number.name} desc }\nlimit 10`;
  return [
    {
      title: `${node.name} by ${number.name}, highest first`,
      text: queryText([`$n: ${node.name}`, `$n.${number.name} is not null`], named, tail),
      view: "table",
    },
  ];
}

function counted(edge: EdgeInfo, nodes: readonly NodeInfo[]): Example {
  const key = nodes.find((node) => node.name === edge.from)?.key[0] ?? "id";
  const tail = "order { total desc }\nlimit 10";
  return {
    title: `${edge.from} by number of ${edge.name}`,
    text: queryText(
      [`$a: ${edge.from}`, `$a ${edgeWord(edge.name)} $b`],
      `$a.${key} as ${key}, count($b) as total`,
      tail,
    ),
    view: "table",
  };
}

function walked(edges: readonly EdgeInfo[]): Example[] {
  const own = edges.find((edge) => edge.from === edge.to && edge.count > 0);
  if (!own) return [];
  const walk = `$w = path $a ${edgeWord(own.name)}{1,3} $b`;
  return [
    {
      title: `Paths of up to three ${own.name}`,
      text: queryText([`$a: ${own.from}`, walk], "$a, $b, $w", "limit 25"),
      view: "graph",
    },
  ];
}

/** Nodes of a type with their properties, in the order of the schema; vectors and blobs are no use in a table. */
export function sampleQuery({ name, properties }: Pick<NodeInfo, "name" | "properties">): string {
  const shown = properties.filter((p) => !/^(Vector|Blob)/.test(p.type)).slice(0, SAMPLE_COLUMNS);
  return queryText([`$n: ${name}`], shown.map((p) => `$n.${p.name}`).join(", ") || "$n", "limit 60");
}

function queryText(clauses: string[], columns: string, tail: string): string {
  return ["match {", ...clauses.map((clause) => `  ${clause}`), "}", `return { ${columns} }`, tail, ""].join("\n");
}
