/** Turns a query into queries whose rows say what was matched, so that the matches can be drawn. */
import type { Catalog, EdgeInfo, Json, Row } from "../api";
import type { CanvasEdge, NodeRef } from "../canvas/model";
import type { Branch, QueryText, Traversal } from "./queries";

export const DRAWN_ROWS = 1000; // of matches

export interface DrawingQuery {
  readonly text: string;
  readonly name: string;
  readonly keepsRows: boolean; // its rows are those of the query
  readonly variables: readonly string[]; // of nodes
  readonly traversals: readonly Traversal[];
}

export interface Matches {
  readonly nodes: NodeRef[];
  readonly edges: CanvasEdge[];
}

/** One query for each branch. Where rows are matches, order and limit stay, so that the picture shows what the table shows. */
export function drawingQueries(query: QueryText): DrawingQuery[] {
  if (query.mutation) return [];
  const alone = query.branches.length === 1;
  return query.branches
    .filter((branch) => variablesOf(branch).length > 0)
    .map((branch) => drawing(query, branch, alone));
}

function drawing(query: QueryText, branch: Branch, alone: boolean): DrawingQuery {
  const variables = variablesOf(branch);
  const columns = [
    ...variables.flatMap((variable, i) => [`${variable} as og_n${i}`, `type(${variable}) as og_t${i}`]),
    ...branch.traversals.flatMap((t, i) => [
      ...(t.edgeVariable ? [`${t.edgeVariable}.id as og_e${i}`] : []),
      ...(t.path ? [`nodes(${t.path}) as og_p${i}`] : []),
    ]),
  ].join(", ");
  const keepsRows = alone && !branch.grouped;
  const wanted = keepsRows
    ? `return { ${branch.projections}${branch.projections ? ", " : ""}${columns} }`
    : `return distinct { ${columns} }`;
  const tail = keepsRows ? query.tail : "";
  const limit = /\blimit\b/.test(tail) ? "" : ` limit ${DRAWN_ROWS}`;
  const text = `${query.header} { match ${branch.match} ${wanted} ${tail}${limit} }`;
  return { text, name: query.name, keepsRows, variables, traversals: branch.traversals };
}

function variablesOf(branch: Branch): string[] {
  const walked = branch.traversals.flatMap((t) => [t.from, t.to]);
  return [...new Set([...branch.bindings.map((b) => b.variable), ...walked])].filter((name) => name !== "$_");
}

/** The nodes and edges of the rows a drawing query gave, in the order they were met. */
export function matchesOf(query: DrawingQuery, rows: readonly Row[], catalog: Catalog): Matches {
  const nodes = new Map<string, NodeRef>();
  const edges: CanvasEdge[] = [];
  const keep = (ref: NodeRef) => nodes.set(`${ref.type}:${ref.id}`, ref);
  for (const row of rows) {
    const bound = new Map<string, NodeRef>();
    query.variables.forEach((variable, i) => {
      const ref = refOf(row[`og_t${i}`], row[`og_n${i}`]);
      if (ref) bound.set(variable, ref);
    });
    bound.forEach(keep);
    query.traversals.forEach((traversal, i) => {
      const [a, b] = [bound.get(traversal.from), bound.get(traversal.to)];
      if (a && b) edges.push(...walked(traversal, a, b, row[`og_e${i}`], row[`og_p${i}`], catalog, keep));
    });
  }
  return { nodes: [...nodes.values()], edges };
}

function walked(
  traversal: Traversal,
  a: NodeRef,
  b: NodeRef,
  id: Json | undefined,
  path: Json | undefined,
  catalog: Catalog,
  keep: (ref: NodeRef) => void,
): CanvasEdge[] {
  const infos = traversal.edges.map((word) => edgeOf(catalog, word)).filter((edge) => edge !== undefined);
  const fitting = infos.filter((edge) => leads(edge, a.type, b.type) || leads(edge, b.type, a.type));
  const names = (fitting.length ? fitting : infos).map((edge) => edge.name);
  const label = `${names.join(" or ")}${traversal.path ? "" : traversal.hops}`;
  const stops = stopsOf(path, infos);
  if (stops) {
    stops.forEach(keep);
    return stops.slice(1).map((to, i) => ({ type: names[0] ?? "path", from: stops[i]!, to, label }));
  }
  const backwards = fitting.length > 0 && fitting.every((edge) => !leads(edge, a.type, b.type));
  const [from, to] = backwards ? [b, a] : [a, b];
  const one = names.length === 1 && !traversal.hops && typeof id === "string";
  return [{ type: names[0] ?? label, id: one ? id : undefined, from, to, label: one ? undefined : label }];
}

/** The nodes of a path, where the types of its edges say of which type all of them are. */
function stopsOf(path: Json | undefined, edges: readonly EdgeInfo[]): NodeRef[] | null {
  const type = edges[0]?.from;
  if (!Array.isArray(path) || !type || !edges.every((edge) => edge.from === type && edge.to === type)) return null;
  return path.map((id) => ({ type, id: String(id) }));
}

function leads(edge: EdgeInfo, from: string, to: string): boolean {
  return edge.from === from && edge.to === to;
}

export function edgeOf(catalog: Catalog, word: string): EdgeInfo | undefined {
  return catalog.edges.find((edge) => edge.name.toLowerCase() === word.toLowerCase());
}

function refOf(type: Json | undefined, id: Json | undefined): NodeRef | null {
  return typeof type === "string" && typeof id === "string" ? { type, id } : null;
}
