/** A difference as a scene: what was added, removed and changed, each with its sign, and the nodes its edges meet. */
import type { Catalog, DiffRow, GraphClient, Op, Row } from "../../api";
import { type CanvasEdge, type CanvasNode, Scene, type Sign, nodeKey } from "../../canvas/model";
import { arrangeAs } from "../../canvas/layout";

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
  arrangeAs(scene.picture, scene.layout);
  return scene;
}

const LOOKED_UP_MAX = 50;

/** The same rows, with the ends of changed edges: a difference tells only the cells that changed. */
export async function withEnds(client: GraphClient, rows: readonly DiffRow[], at: string): Promise<DiffRow[]> {
  let left = LOOKED_UP_MAX;
  return Promise.all(
    rows.map(async (row) => {
      if (row.kind !== "edge" || row.operation !== "update" || row.after?.["src"] !== undefined || left-- <= 0)
        return row;
      try {
        const { ends } = await client.entity({ branch: "main", at }, row.type, row.id);
        return ends ? { ...row, after: { ...row.after, src: ends.from, dst: ends.to } } : row;
      } catch {
        return row; // without its ends it is still in the list of rows
      }
    }),
  );
}

function propertiesOf(row: DiffRow): Row {
  const { id: _, ...rest } = { ...row.before, ...row.after };
  return rest;
}

function edgeOf(row: DiffRow, catalog: Catalog): CanvasEdge | null {
  const kind = catalog.edges.find((edge) => edge.name === row.type);
  const image = row.after ?? row.before ?? {};
  const [from, to] = [image["src"], image["dst"]];
  if (!kind || typeof from !== "string" || typeof to !== "string") return null;
  return {
    type: row.type,
    id: row.id,
    from: { type: kind.from, id: from },
    to: { type: kind.to, id: to },
    sign: SIGNS[row.operation],
  };
}
