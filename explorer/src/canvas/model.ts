/** What is on a canvas, and what waits for room. */
import { MultiDirectedGraph } from "graphology";
import type { Row } from "../api";
import type { Layout } from "./layout";

export const NODES_MAX = 300;
export const MORE_NODES = 100;

/** What became of something between two states. Always shown as a sign, never by colour alone. */
export type Sign = "+" | "−" | "~";

export interface CanvasNode {
  readonly type: string;
  readonly id: string;
  readonly properties: Row;
  readonly sign?: Sign;
}

export interface CanvasEdge {
  readonly type: string;
  readonly id?: string; // none: a walk or a pair, not one stored edge
  readonly from: NodeRef;
  readonly to: NodeRef;
  readonly label?: string;
  readonly sign?: Sign;
}

export interface NodeRef {
  readonly type: string;
  readonly id: string;
}

export interface NodeAttributes {
  node: CanvasNode;
  x: number;
  y: number;
  size: number;
  pinned: boolean;
  fixed: boolean; // what the layout calls a pin
}

export interface EdgeAttributes {
  edge: CanvasEdge;
}

export type Picture = MultiDirectedGraph<NodeAttributes, EdgeAttributes>;

export function nodeKey(ref: NodeRef): string {
  return `${ref.type}:${ref.id}`;
}

export function edgeKey(edge: CanvasEdge): string {
  return edge.id !== undefined
    ? `${edge.type}:${edge.id}`
    : JSON.stringify([edge.type, edge.label, edge.from, edge.to]);
}

/** The nodes and edges of a canvas: at most `room` of them are shown, the others wait. */
export class Scene {
  readonly picture: Picture = new MultiDirectedGraph<NodeAttributes, EdgeAttributes>();
  layout: Layout = "force";
  private room = NODES_MAX;
  private waiting = new Map<string, CanvasNode>();
  private loose = new Map<string, CanvasEdge>(); // edges that miss an end
  private hidden = new Map<string, CanvasNode>();
  private listeners = new Set<() => void>();
  private random = generator(7);

  get waitingCount(): number {
    return this.waiting.size;
  }

  get hiddenCount(): number {
    return this.hidden.size;
  }

  get nodes(): CanvasNode[] {
    return this.picture.mapNodes((_, attributes) => attributes.node);
  }

  get edges(): CanvasEdge[] {
    return this.picture.mapEdges((_, attributes) => attributes.edge);
  }

  onChange(tell: () => void): () => void {
    this.listeners.add(tell);
    return () => this.listeners.delete(tell);
  }

  changed(): void {
    for (const tell of this.listeners) tell();
  }

  /** Add what somebody asked for by name, whether there is room or not. */
  bring(nodes: readonly CanvasNode[], edges: Iterable<CanvasEdge>, near?: string): void {
    this.room = Math.max(this.room, this.picture.order + nodes.length);
    for (const node of nodes) this.waiting.delete(nodeKey(node));
    this.add(nodes, edges, near);
  }

  /** Add what is new and fits; `near` is where new nodes appear. How many nodes came into sight. */
  add(nodes: Iterable<CanvasNode>, edges: Iterable<CanvasEdge>, near?: string): number {
    const before = this.picture.order;
    for (const node of nodes) this.addNode(node, near);
    for (const edge of edges) this.loose.set(edgeKey(edge), edge);
    this.connect();
    this.changed();
    return this.picture.order - before;
  }

  showMore(): void {
    this.room = this.picture.order + MORE_NODES;
    const next = [...this.waiting.values()];
    this.waiting.clear();
    this.add(next, []);
  }

  clear(): void {
    this.picture.clear();
    this.waiting.clear();
    this.loose.clear();
    this.hidden.clear();
    this.room = NODES_MAX;
    this.changed();
  }

  hide(key: string): void {
    if (!this.picture.hasNode(key)) return;
    const node = this.picture.getNodeAttribute(key, "node");
    for (const edge of this.picture.edges(key)) this.loose.set(edge, this.picture.getEdgeAttribute(edge, "edge"));
    this.picture.dropNode(key);
    this.hidden.set(key, node);
    this.changed();
  }

  unhide(): void {
    const back = [...this.hidden.values()];
    this.hidden.clear();
    this.add(back, []);
  }

  pin(key: string, pinned: boolean): void {
    this.picture.mergeNodeAttributes(key, { pinned, fixed: pinned });
    this.changed();
  }

  private addNode(node: CanvasNode, near: string | undefined): void {
    const key = nodeKey(node);
    if (this.picture.hasNode(key)) {
      this.picture.setNodeAttribute(key, "node", node);
      return;
    }
    if (this.hidden.has(key)) return;
    if (this.picture.order >= this.room) {
      this.waiting.set(key, node);
      return;
    }
    this.picture.addNode(key, { node, ...this.place(near), size: 7, pinned: false, fixed: false });
  }

  private place(near: string | undefined): { x: number; y: number } {
    const angle = this.random() * 2 * Math.PI;
    if (near === undefined || !this.picture.hasNode(near)) {
      const distance = 100 * Math.sqrt(this.random());
      return { x: distance * Math.cos(angle), y: distance * Math.sin(angle) };
    }
    const { x, y } = this.picture.getNodeAttributes(near);
    return { x: x + 12 * Math.cos(angle), y: y + 12 * Math.sin(angle) };
  }

  private connect(): void {
    for (const [key, edge] of this.loose) {
      const from = nodeKey(edge.from);
      const to = nodeKey(edge.to);
      if (!this.picture.hasNode(from) || !this.picture.hasNode(to)) continue;
      this.loose.delete(key);
      if (!this.picture.hasEdge(key)) this.addEdge(key, edge, from, to);
    }
  }

  /** A pair that is known to be connected gives way to the edges that connect it. */
  private addEdge(key: string, edge: CanvasEdge, from: string, to: string): void {
    const alike = this.picture
      .directedEdges(from, to)
      .filter((other) => isSameWay(edge, this.picture.getEdgeAttribute(other, "edge")));
    if (edge.id === undefined && alike.length > 0) return;
    for (const other of alike)
      if (this.picture.getEdgeAttribute(other, "edge").id === undefined) this.picture.dropEdge(other);
    this.picture.addEdgeWithKey(key, from, to, { edge });
  }
}

function isSameWay(a: CanvasEdge, b: CanvasEdge): boolean {
  return a.type === b.type && (a.label ?? a.type) === (b.label ?? b.type);
}

/** The same numbers every time, so that the same graph is drawn the same way. */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
