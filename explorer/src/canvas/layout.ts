/** Where nodes go: by forces, in layers along the edges, or in rings around one of them. Pinned nodes stay. */
import forceAtlas2 from "graphology-layout-forceatlas2";
import type { Picture } from "./model";

export const LAYOUTS = ["force", "layered", "radial"] as const;
export type Layout = (typeof LAYOUTS)[number];

const BUDGET_MILLISECONDS = 350;
const STEP_ITERATIONS = 20;
const ITERATIONS_MAX = 400;
const SWEEPS = 4;
const STRETCH_MAX = 2;
const COLUMN_NODES_MAX = 24; // a longer layer takes several columns

/** `root` is in the middle of rings; without one, the node with most edges. */
export function arrangeAs(picture: Picture, layout: Layout, root?: string | null): void {
  if (layout === "force") layOut(picture);
  if (layout === "layered") layered(picture);
  if (layout === "radial") radial(picture, root && picture.hasNode(root) ? root : hub(picture));
  mend(picture);
  if (layout !== "layered") widen(picture);
}

export function layOut(picture: Picture, budget = BUDGET_MILLISECONDS): void {
  if (picture.order === 0) return;
  const settings = {
    ...forceAtlas2.inferSettings(picture),
    gravity: 1,
    scalingRatio: 12,
    slowDown: 2,
    barnesHutOptimize: false,
  };
  const end = performance.now() + budget;
  for (let done = 0; done < ITERATIONS_MAX && performance.now() < end; done += STEP_ITERATIONS) {
    forceAtlas2.assign(picture, { iterations: STEP_ITERATIONS, settings });
  }
  mend(picture);
}

/** Windows are wider than high, and so are names: what is round is drawn out to fit. */
function widen(picture: Picture): void {
  if (picture.someNode((_, { fixed }) => fixed)) return;
  const span = (values: number[]) => Math.max(...values) - Math.min(...values);
  const [wide, high] = [span(picture.mapNodes((_, a) => a.x)), span(picture.mapNodes((_, a) => a.y))];
  const factor = Math.min(STRETCH_MAX, (aspect() * high) / (wide || 1));
  if (factor > 1) picture.updateEachNodeAttributes((_, a) => ({ ...a, x: a.x * factor }), { attributes: ["x"] });
}

function aspect(): number {
  return typeof innerWidth === "undefined" ? 1 : Math.min(1.7, innerWidth / innerHeight);
}

/** Forces may push a node beyond all numbers; it comes back to the others. */
function mend(picture: Picture): void {
  picture.forEachNode((key, { x, y }) => {
    if (!Number.isFinite(x) || !Number.isFinite(y)) picture.mergeNodeAttributes(key, { x: 0, y: 0 });
  });
}

// --- layers ----------------------------------------------------------------------------------------------------------

/** From left to right along the edges; in each layer near what they are connected with. */
function layered(picture: Picture): void {
  const depth = depths(picture);
  const layers: string[][] = [];
  for (const [key, level] of depth) (layers[level] ??= []).push(key);
  const rows = new Map<string, number>();
  layers.forEach((layer) => layer.forEach((key, i) => rows.set(key, i)));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const wish = new Map(
        layer.map((key) => [key, mean(picture.neighbors(key).map((k) => rows.get(k)!)) ?? rows.get(key)!]),
      );
      layer.sort((a, b) => wish.get(a)! - wish.get(b)!);
      layer.forEach((key, i) => rows.set(key, i));
    }
  }
  const tallest = Math.min(COLUMN_NODES_MAX, Math.max(1, ...layers.map((layer) => layer.length)));
  const gap = Math.max(6, (tallest * 1.8) / Math.max(1, layers.length - 1));
  let x = 0;
  for (const layer of layers) {
    const columns = Math.ceil(layer.length / COLUMN_NODES_MAX);
    layer.forEach((key, i) => {
      const [column, row] = [i % columns, Math.floor(i / columns)];
      const height = Math.ceil(layer.length / columns);
      put(picture, key, x + column * 3, (height - 1) / 2 - row);
    });
    x += gap + (columns - 1) * 3;
  }
}

/** How many edges lead to a node at most, from one to which none leads; circles are cut where they were met. */
function depths(picture: Picture): Map<string, number> {
  const found = new Map<string, number>();
  const open = new Set<string>();
  const visit = (key: string): number => {
    const known = found.get(key);
    if (known !== undefined) return known;
    open.add(key);
    const before = picture.inNeighbors(key).filter((k) => k !== key && !open.has(k));
    const level = before.length ? Math.max(...before.map(visit)) + 1 : 0;
    open.delete(key);
    found.set(key, level);
    return level;
  };
  picture.forEachNode(visit);
  return found;
}

function mean(values: readonly number[]): number | null {
  return values.length ? values.reduce((sum, v) => sum + v, 0) / values.length : null;
}

// --- rings -----------------------------------------------------------------------------------------------------------

function hub(picture: Picture): string | null {
  return picture.reduceNodes<string | null>(
    (best, key) => (best === null || picture.degree(key) > picture.degree(best) ? key : best),
    null,
  );
}

/** One node in the middle, its neighbours around it, theirs around these; what is not connected is outside. */
function radial(picture: Picture, root: string | null): void {
  if (root === null) return;
  const children = new Map<string, string[]>();
  const seen = new Set([root]);
  for (let front = [root]; front.length > 0;) {
    const next: string[] = [];
    for (const key of front) {
      const own = picture.neighbors(key).filter((k) => !seen.has(k) && seen.add(k));
      children.set(key, own);
      next.push(...own);
    }
    front = next;
  }
  const leaves = (key: string): number =>
    Math.max(
      1,
      (children.get(key) ?? []).reduce((sum, k) => sum + leaves(k), 0),
    );
  let deepest = 0;
  const spread = (key: string, from: number, to: number, ring: number): void => {
    deepest = Math.max(deepest, ring);
    const angle = (from + to) / 2;
    put(picture, key, ring * Math.cos(angle), ring * Math.sin(angle));
    const share = (to - from) / leaves(key);
    let at = from;
    for (const child of children.get(key) ?? []) {
      const width = share * leaves(child);
      spread(child, at, at + width, ring + 1);
      at += width;
    }
  };
  spread(root, 0, 2 * Math.PI, 0);
  const others = picture.nodes().filter((key) => !seen.has(key));
  others.forEach((key, i) => {
    const angle = (2 * Math.PI * i) / others.length;
    put(picture, key, (deepest + 1) * Math.cos(angle), (deepest + 1) * Math.sin(angle));
  });
}

function put(picture: Picture, key: string, x: number, y: number): void {
  if (!picture.getNodeAttribute(key, "fixed")) picture.mergeNodeAttributes(key, { x: x * 20, y: y * 20 });
}
