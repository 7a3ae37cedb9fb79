/** Where labels go: beside their nodes, never on top of each other. What finds no room is left out, the least first. Pure. */

export interface LabelItem {
  readonly key: string;
  readonly text: string;
  readonly x: number; // of the node, or the middle of the edge
  readonly y: number;
  readonly radius: number; // of the node; 0: an edge
  readonly width: number; // of the text
  readonly weight: number; // more is placed first
  readonly forced?: boolean; // placed whatever is in the way
  readonly edges?: readonly number[]; // the directions in which edges leave the node, in radians
}

export interface PlacedLabel {
  readonly key: string;
  readonly text: string;
  readonly x: number; // where the text begins
  readonly y: number; // its base line
}

interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

const HEIGHT = 15;
const GAP = 4;
/** Of each place for a label: where it is seen from the node, and how far to either side an edge runs through it. */
const DIRECTIONS: readonly (readonly [number, number])[] = [
  [0, 0.35],
  [Math.PI / 2, 0.8],
  [Math.PI, 0.35],
  [-Math.PI / 2, 0.8],
  [Math.PI / 4, 0.5],
  [-Math.PI / 4, 0.5],
  [(3 * Math.PI) / 4, 0.5],
  [(-3 * Math.PI) / 4, 0.5],
];

export function placeLabels(items: readonly LabelItem[], bounds: { width: number; height: number }): PlacedLabel[] {
  const discs = new Grid(items.filter((item) => item.radius > 0).map((item) => [discOf(item), item.key] as const));
  const taken = new Grid<string>([]);
  const placed: PlacedLabel[] = [];
  const order = [...items].sort((a, b) => Number(b.forced ?? false) - Number(a.forced ?? false) || b.weight - a.weight);
  for (const item of order) {
    if (item.text === "" || outside(item, bounds)) continue;
    const boxes = candidates(item);
    const free = boxes.find((box) => within(box, bounds) && !taken.meets(box, "") && !discs.meets(box, item.key));
    const box = free ?? (item.forced ? boxes[0] : undefined);
    if (!box) continue;
    taken.add(box, item.key);
    placed.push({ key: item.key, text: item.text, x: box.left, y: box.bottom - 4 });
  }
  return placed;
}

/** Right, below, left, above, those first that no edge runs through; an edge has its middle, and a little to either side. */
function candidates({ x, y, radius, width, edges = [] }: LabelItem): Box[] {
  const at = (left: number, middle: number): Box => ({
    left,
    top: middle - HEIGHT / 2,
    right: left + width,
    bottom: middle + HEIGHT / 2,
  });
  if (radius === 0) return [0, -HEIGHT, HEIGHT].map((shift) => at(x - width / 2, y + shift));
  const [side, below] = [radius + GAP, radius + GAP + HEIGHT / 2];
  const boxes = [
    at(x + side, y),
    at(x - width / 2, y + below),
    at(x - side - width, y),
    at(x - width / 2, y - below),
    at(x + side * 0.7, y + below * 0.75),
    at(x + side * 0.7, y - below * 0.75),
    at(x - side * 0.7 - width, y + below * 0.75),
    at(x - side * 0.7 - width, y - below * 0.75),
  ];
  const crossed = DIRECTIONS.map(([to, room]) => edges.some((angle) => between(angle, to) < room));
  return [...boxes.filter((_, i) => !crossed[i]), ...boxes.filter((_, i) => crossed[i])];
}

/** The angle between two directions. */
function between(a: number, b: number): number {
  const turn = Math.abs(a - b) % (2 * Math.PI);
  return Math.min(turn, 2 * Math.PI - turn);
}

function discOf({ x, y, radius }: LabelItem): Box {
  return { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius };
}

function outside({ x, y }: LabelItem, { width, height }: { width: number; height: number }): boolean {
  return x < -20 || y < -20 || x > width + 20 || y > height + 20;
}

function within(box: Box, { width, height }: { width: number; height: number }): boolean {
  return box.left >= 0 && box.top >= 0 && box.right <= width && box.bottom <= height;
}

const CELL = 96;

/** Boxes by the squares they lie in, so that only near ones are compared. */
class Grid<K> {
  private readonly cells = new Map<string, [Box, K][]>();

  constructor(boxes: readonly (readonly [Box, K])[]) {
    for (const [box, key] of boxes) this.add(box, key);
  }

  add(box: Box, key: K): void {
    for (const cell of squares(box)) {
      const list = this.cells.get(cell);
      if (list) list.push([box, key]);
      else this.cells.set(cell, [[box, key]]);
    }
  }

  meets(box: Box, except: K): boolean {
    return squares(box).some((cell) =>
      this.cells.get(cell)?.some(([other, key]) => key !== except && overlap(box, other)),
    );
  }
}

function squares(box: Box): string[] {
  const found: string[] = [];
  for (let x = Math.floor(box.left / CELL); x <= Math.floor(box.right / CELL); x++)
    for (let y = Math.floor(box.top / CELL); y <= Math.floor(box.bottom / CELL); y++) found.push(`${x} ${y}`);
  return found;
}

export function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
