/** A shortest path between two nodes, over edges of all types and in both directions.
 *
 * Where both are of one type that edges connect with itself, one path query answers. Otherwise the search grows a level at a
 * time from both ends, one query for each way, until the two meet.
 */
import { asApiError } from "../hooks";
import { type CanvasEdge, nodeKey, type NodeRef } from "./model";
import { edgeBetween, edgeWord, type Found, type GraphSource, step, type Way } from "./source";

const HOPS_MAX = 6;
const VISITED_MAX = 20_000;
const STEP_ROWS_MAX = 5_000;

interface Reached {
  readonly ref: NodeRef;
  readonly by: CanvasEdge | null; // the edge that led here
  readonly from: string | null;
}

/** A path as it is walked: its nodes in order, and the edges between them. */
export interface WalkedPath {
  readonly nodes: readonly NodeRef[];
  readonly edges: readonly CanvasEdge[];
}

export function walkedPath(from: NodeRef, edges: readonly CanvasEdge[]): WalkedPath {
  const nodes: NodeRef[] = [from];
  for (const edge of edges) nodes.push(nodeKey(edge.from) === nodeKey(nodes.at(-1)!) ? edge.to : edge.from);
  return { nodes, edges };
}

export async function findPath(source: GraphSource, a: NodeRef, b: NodeRef): Promise<Found | null> {
  const direct = await directPath(source, a, b);
  const edges = direct ?? (await meetingPath(source, a, b));
  if (!edges) return null;
  const refs = new Map([a, b, ...edges.flatMap((e) => [e.from, e.to])].map((ref) => [nodeKey(ref), ref]));
  return { nodes: await source.nodes([...refs.values()]), edges };
}

async function directPath(source: GraphSource, a: NodeRef, b: NodeRef): Promise<CanvasEdge[] | null> {
  const own = source.catalog.edges.filter((e) => e.from === a.type && e.to === a.type);
  const others = source.waysOf(a.type).some((way) => way.type !== a.type);
  if (a.type !== b.type || own.length === 0 || others) return null;
  const words = own.map((e) => edgeWord(e.name)).join("|");
  const text =
    `query path($from: String, $to: String) { match { $a: ${a.type} $a.id = $from $w = path $a <${words}>{1,${HOPS_MAX}} $b $b.id = $to } ` +
    `return { nodes($w) as nodes, edges($w) as edges } limit 1 }`;
  const row = (await source.run(text, { from: a.id, to: b.id })).rows[0];
  if (!row) return null;
  const ids = row["nodes"] as string[];
  return (row["edges"] as string[]).map((id, i) => ({
    type: own.length === 1 ? own[0]!.name : own.map((e) => e.name).join(" or "),
    id,
    from: { type: a.type, id: ids[i]! },
    to: { type: a.type, id: ids[i + 1]! },
  }));
}

async function meetingPath(source: GraphSource, a: NodeRef, b: NodeRef): Promise<CanvasEdge[] | null> {
  const sides = [start(a), start(b)] as const;
  let fronts: [NodeRef[], NodeRef[]] = [[a], [b]];
  for (let hop = 0; hop < HOPS_MAX; hop++) {
    const near = fronts[0].length <= fronts[1].length ? 0 : 1;
    if (fronts[near].length === 0) return null;
    const grown = await grow(source, fronts[near], sides[near]);
    fronts = near === 0 ? [grown, fronts[1]] : [fronts[0], grown];
    const other = sides[1 - near]!;
    const met = grown.map(nodeKey).find((key) => other.has(key));
    if (met !== undefined) return [...trail(sides[0], met).reverse(), ...trail(sides[1], met)];
    if (sides[0].size + sides[1].size > VISITED_MAX) return null;
  }
  return null;
}

function start(ref: NodeRef): Map<string, Reached> {
  return new Map([[nodeKey(ref), { ref, by: null, from: null }]]);
}

/** The nodes one step further that were not reached before. */
async function grow(source: GraphSource, front: readonly NodeRef[], side: Map<string, Reached>): Promise<NodeRef[]> {
  const byType = new Map<string, string[]>();
  for (const { type, id } of front) byType.set(type, [...(byType.get(type) ?? []), id]);
  const walks = [...byType].flatMap(([type, ids]) => source.waysOf(type).map((way) => walk(source, type, ids, way)));
  const next: NodeRef[] = [];
  for (const edge of (await Promise.all(walks)).flat()) {
    const [here, there] =
      edge.way.direction === "out" ? [edge.edge.from, edge.edge.to] : [edge.edge.to, edge.edge.from];
    if (side.has(nodeKey(there))) continue;
    side.set(nodeKey(there), { ref: there, by: edge.edge, from: nodeKey(here) });
    next.push(there);
  }
  return next;
}

async function walk(
  source: GraphSource,
  type: string,
  ids: string[],
  way: Way,
): Promise<{ way: Way; edge: CanvasEdge }[]> {
  const text =
    `query grow($ids: [String]) { match { $n: ${type} $n.id in $ids ${step(way, source.edge(way.edge), "$e:")} } ` +
    `return { $n.id as here, $m.id as there, $e.id as edge } limit ${STEP_ROWS_MAX} }`;
  try {
    const { rows } = await source.run(text, { ids });
    return rows.map((row) => ({
      way,
      edge: edgeBetween(
        way,
        { type, id: String(row["here"]) },
        { type: way.type, id: String(row["there"]) },
        String(row["edge"]),
      ),
    }));
  } catch (error) {
    if (asApiError(error).denied) return []; // a way the policy closes is no way
    throw error;
  }
}

function trail(side: Map<string, Reached>, from: string): CanvasEdge[] {
  const edges: CanvasEdge[] = [];
  for (let at = side.get(from); at?.by; at = side.get(at.from ?? "")) edges.push(at.by);
  return edges;
}
