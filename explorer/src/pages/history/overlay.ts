/** A difference as a scene: what was added, removed and changed, each with its sign, and the nodes its edges meet. */
import type { Catalog, DiffRow, Op, Row } from "../../api";
import { type CanvasEdge, type CanvasNode, Scene, type Sign, nodeKey } from "../../canvas/model";
import { layOut } from "../../canvas/layout";

export const SIGNS: Record<Op, Sign> = { insert: "+", update: "~", delete: "−" };

export function overlayOf(rows: readonly DiffRow[], catalog: Catalog): Scene {
  const nodes = new Map<string, CanvasNode>();
  for (const row of rows) {
    if (row.kind !== "node") continue;
    const node = { type: row.type, id: row.id, properties: propertiesOf(row), sign: SIGNS[row.operation] };
    nodes.set(nodeKey(node), node);
  }
  const edges: CanvasEdge[] = [];
  for (const row of rows) {
    const edge = row.kind === "edge" ? edgeOf(row, catalog) : null;
    if (!edge) continue;
    edges.push(edge);
    for (const end of [edge.from, edge.to]) {
      if (!nodes.has(nodeKey(end))) nodes.set(nodeKey(end), { ...end, properties: {} });
    }
  }
  const scene = new Scene();
  scene.add(nodes.values(), edges);
  layOut(scene.picture);
  return scene;
}

function propertiesOf(row: DiffRow): Row {
  const { id: _, ...rest } = { ...row.before, ...row.after };
  return rest;
}

function edgeOf(row: DiffRow, catalog: Catalog): CanvasEdge | null {
  const kind = catalog.edges.find((edge) => edge.name === row.type);
  const image = row.after ?? row.before ?? {};
  const [from, to] = [image["src"], image["dst"]];
  if (!kind || typeof from !== "string" || typeof to !== "string") return null; // of an update, only changed cells are told
  return { type: row.type, id: row.id, from: { type: kind.from, id: from }, to: { type: kind.to, id: to }, sign: SIGNS[row.operation] };
}
