/** Brings nodes and edges to a canvas, by queries anybody could write. */
import {
  ApiError,
  type Catalog,
  type EdgeInfo,
  type GraphClient,
  type Json,
  type Neighbours,
  type NodeInfo,
  type Point,
  type Row,
} from "../api";
import type { CanvasEdge, CanvasNode, NodeRef } from "./model";
import { nodeKey } from "./model";

export const NEIGHBOURS_MAX = 100;

export interface Found {
  readonly nodes: CanvasNode[];
  readonly edges: CanvasEdge[];
}

/** One edge type in one direction, as seen from a node type. */
export interface Way {
  readonly edge: string;
  readonly direction: "out" | "in";
  readonly type: string; // at the other end
}

export class GraphSource {
  constructor(
    readonly client: GraphClient,
    readonly point: Point,
    readonly catalog: Catalog,
  ) {}

  /** Nodes with their properties; those that do not exist here are left out. */
  async nodes(refs: readonly NodeRef[]): Promise<CanvasNode[]> {
    const byType = new Map<string, string[]>();
    for (const { type, id } of refs) byType.set(type, [...(byType.get(type) ?? []), id]);
    const found = await Promise.all([...byType].map(([type, ids]) => this.ofType(type, ids)));
    const byKey = new Map(found.flat().map((node) => [nodeKey(node), node]));
    return refs.map((ref) => byKey.get(nodeKey(ref))).filter((node) => node !== undefined);
  }

  /** Some nodes of a type, as they come. */
  async sample(type: string, limit: number): Promise<CanvasNode[]> {
    const text = `query sample() { match { $n: ${type} } return { ${this.columns(type)} } limit ${limit} }`;
    return toNodes(type, (await this.run(text)).rows);
  }

  /** Nodes whose key or id holds a text, of every type that may be read. */
  async find(text: string, limit: number): Promise<CanvasNode[]> {
    const found = await Promise.all(this.catalog.nodes.map((node) => this.findOf(node, text, limit)));
    return found.flat().slice(0, limit);
  }

  private async findOf(node: NodeInfo, text: string, limit: number): Promise<CanvasNode[]> {
    const named = [...node.key, ...node.properties.map((p) => p.name)].find(
      (name) => node.properties.find((p) => p.name === name)?.type === "String",
    );
    const query =
      `query find($text: String) { match { $n: ${node.name} lower($n.${named ?? "id"}) contains $text } ` +
      `return { ${this.columns(node.name)} } limit ${limit} }`;
    try {
      return toNodes(node.name, (await this.run(query, { text: text.toLowerCase() })).rows);
    } catch (error) {
      if (error instanceof ApiError && error.denied) return []; // a type the policy hides has no nodes
      throw error;
    }
  }

  private async ofType(type: string, ids: string[]): Promise<CanvasNode[]> {
    const text = `query nodes($ids: [String]) { match { $n: ${type} $n.id in $ids } return { ${this.columns(type)} } }`;
    return toNodes(type, (await this.run(text, { ids: [...new Set(ids)] })).rows);
  }

  /** Everything that is worth a label or a colour: vectors and blobs stay where they are. */
  private columns(type: string): string {
    const info = this.catalog.nodes.find((node) => node.name === type);
    const names = (info?.properties ?? []).filter((p) => !/^(Vector|Blob)/.test(p.type)).map((p) => p.name);
    return ["$n.id as id", ...names.map((name, i) => `$n.${name} as p${i}_${name}`)].join(", ");
  }

  /** The next neighbours of a node along one way. */
  async neighbours(node: NodeRef, way: Way, skip = 0): Promise<Found> {
    const text =
      `query neighbours($id: String, $skip: I64) { match { $n: ${node.type} $n.id = $id ${step(way, this.edge(way.edge), "$e:")} } ` +
      `return { $m.id as id, $e.id as edge } order { id, edge } skip $skip limit ${NEIGHBOURS_MAX} }`;
    const { rows } = await this.run(text, { id: node.id, skip });
    const ends = rows.map((row) => ({ type: way.type, id: String(row["id"]) }));
    const edges = rows.map((row, i) => edgeBetween(way, node, ends[i]!, String(row["edge"])));
    return { nodes: await this.nodes(ends), edges };
  }

  waysOf(type: string): Way[] {
    return this.catalog.edges.flatMap((edge): Way[] => [
      ...(edge.from === type ? [{ edge: edge.name, direction: "out" as const, type: edge.to }] : []),
      ...(edge.to === type ? [{ edge: edge.name, direction: "in" as const, type: edge.from }] : []),
    ]);
  }

  edge(name: string): EdgeInfo {
    const found = this.catalog.edges.find((edge) => edge.name === name);
    if (!found) throw new Error(`there is no edge type ${name}`);
    return found;
  }

  run(query: string, params: Record<string, Json> = {}) {
    return this.client.query(this.point, { query, params });
  }
}

/** A walk from `$n` to `$m`. Edges between two types find their direction by themselves. */
export function step(way: Pick<Way, "edge" | "direction">, edge: Pick<EdgeInfo, "from" | "to">, variable = ""): string {
  const backwards = way.direction === "in" && edge.from === edge.to;
  return backwards ? `$m ${variable}${edgeWord(way.edge)} $n` : `$n ${variable}${edgeWord(way.edge)} $m`;
}

/** An edge type as queries write it. */
export function edgeWord(name: string): string {
  return name.charAt(0).toLowerCase() + name.slice(1);
}

export function edgeBetween(way: Way, here: NodeRef, there: NodeRef, id: string): CanvasEdge {
  const ends = way.direction === "out" ? { from: here, to: there } : { from: there, to: here };
  return { type: way.edge, id, from: ref(ends.from), to: ref(ends.to) };
}

export function wayOf(found: Neighbours): Way {
  return { edge: found.edge, direction: found.direction, type: found.type };
}

function ref({ type, id }: NodeRef): NodeRef {
  return { type, id };
}

function toNodes(type: string, rows: readonly Row[]): CanvasNode[] {
  return rows.map(({ id, ...rest }) => ({ type, id: String(id), properties: unprefixed(rest) }));
}

/** Columns carry a number, so that a property called `id` or like another in other words keeps its own. */
function unprefixed(row: Row): Row {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name.replace(/^p\d+_/, ""), value]));
}
