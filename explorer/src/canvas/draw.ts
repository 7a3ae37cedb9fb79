/** Draws a picture with a pen: on a canvas for browsers without WebGL and for PNG, or as SVG. */
import { type LabelItem, placeLabels } from "./labels";
import type { Picture } from "./model";
import type { Styles } from "./painter";

export interface Spot {
  readonly x: number;
  readonly y: number;
}

/** From the picture to the window: scaled, then moved; what is up in the one is up in the other. */
export interface View extends Spot {
  readonly scale: number;
}

export interface Pen {
  line(a: Spot, b: Spot, colour: string, width: number): void;
  shape(corners: readonly Spot[], colour: string): void;
  disc(at: Spot, radius: number, colour: string): void;
  ring(at: Spot, radius: number, colour: string, width: number): void;
  text(text: string, at: Spot, size: number, bold: boolean, colour: string, halo: string): void;
  measure(text: string, size: number, bold: boolean): number;
}

const PADDING = 56;
const NODE_TEXT = 12;
const EDGE_TEXT = 11;
const EDGE_ROOM = 80; // a shorter one has no room for its name
const MANY_NODES = 400; // of so many only hubs are named
const HUB_EDGES = 4;
const EDGES_AVOIDED = 12; // with more, they are everywhere

export function fitted(places: readonly Spot[], width: number, height: number): View {
  if (places.length === 0) return { scale: 1, x: width / 2, y: height / 2 };
  const [left, right] = [Math.min(...places.map((p) => p.x)), Math.max(...places.map((p) => p.x))];
  const [low, high] = [Math.min(...places.map((p) => p.y)), Math.max(...places.map((p) => p.y))];
  const room = [(width - 2 * PADDING) / (right - left || 1), (height - 2 * PADDING) / (high - low || 1)];
  const scale = Math.max(1e-6, Math.min(...room));
  return { scale, x: width / 2 - (scale * (left + right)) / 2, y: height / 2 + (scale * (low + high)) / 2 };
}

export function placesOf(picture: Picture, keys?: readonly string[]): Spot[] {
  const wanted = keys?.filter((key) => picture.hasNode(key)) ?? picture.nodes();
  return wanted.map((key) => {
    const { x, y } = picture.getNodeAttributes(key);
    return { x, y };
  });
}

export function drawPicture(
  pen: Pen,
  picture: Picture,
  styles: Styles,
  view: View,
  size: { width: number; height: number },
) {
  const place = (key: string): Spot => {
    const { x, y } = picture.getNodeAttributes(key);
    return { x: view.x + x * view.scale, y: view.y - y * view.scale };
  };
  picture.forEachEdge((key, _, from, to) => drawEdge(pen, styles, key, place(from), place(to), styles.node(to).size));
  picture.forEachNode((key) => {
    const style = styles.node(key);
    pen.disc(place(key), style.size, style.colour);
    if (style.ring) pen.ring(place(key), style.size + 3, style.ring, 2.5);
  });
  drawLabels(pen, picture, styles, place, size);
}

function drawEdge(pen: Pen, styles: Styles, key: string, a: Spot, b: Spot, size: number): void {
  const style = styles.edge(key);
  const angle = Math.atan2(b.y - a.y, b.x - a.x);
  const back = (from: Spot, length: number, turn = 0): Spot => ({
    x: from.x - length * Math.cos(angle + turn),
    y: from.y - length * Math.sin(angle + turn),
  });
  const tip = back(b, size + 1);
  pen.line(a, back(tip, 6), style.colour, style.width);
  pen.shape([tip, back(tip, 8, 0.4), back(tip, 8, -0.4)], style.colour);
}

/** Names of nodes and edges, none on top of another. Which nodes got theirs. */
export function drawLabels(
  pen: Pen,
  picture: Picture,
  styles: Styles,
  place: (key: string) => Spot,
  size: { width: number; height: number },
): Set<string> {
  const { ground, text, muted } = styles.scheme();
  const items = [...nodeItems(pen, picture, styles, place), ...edgeItems(pen, picture, styles, place)];
  const placed = placeLabels(items, size);
  for (const { key, text: label, x, y } of placed) {
    const node = picture.hasNode(key);
    pen.text(label, { x, y }, node ? NODE_TEXT : EDGE_TEXT, node, node ? text : muted, ground);
  }
  return new Set(placed.map(({ key }) => key));
}

function nodeItems(pen: Pen, picture: Picture, styles: Styles, place: (key: string) => Spot): LabelItem[] {
  const many = picture.order > MANY_NODES;
  return picture.mapNodes((key) => {
    const style = styles.node(key);
    const degree = picture.degree(key);
    const named = !many || degree >= HUB_EDGES || style.ring !== null;
    const at = place(key);
    return {
      key,
      text: named ? style.label : "",
      ...at,
      edges: named && degree <= EDGES_AVOIDED ? picture.mapNeighbors(key, (other) => direction(at, place(other))) : [],
      radius: style.size + (style.ring ? 5 : 0),
      width: named ? pen.measure(style.label, NODE_TEXT, true) : 0,
      weight: 1000 + degree,
      forced: style.ring !== null,
    };
  });
}

function direction(from: Spot, to: Spot): number {
  return Math.atan2(to.y - from.y, to.x - from.x);
}

function edgeItems(pen: Pen, picture: Picture, styles: Styles, place: (key: string) => Spot): LabelItem[] {
  const found: LabelItem[] = [];
  picture.forEachEdge((key, _, from, to) => {
    const { label } = styles.edge(key);
    if (!label) return;
    const [a, b] = [place(from), place(to)];
    const width = pen.measure(label, EDGE_TEXT, false);
    if (Math.hypot(b.x - a.x, b.y - a.y) < Math.min(EDGE_ROOM, width + 24)) return;
    found.push({ key, text: label, x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, radius: 0, width, weight: 1 });
  });
  return found;
}

// --- on a canvas -----------------------------------------------------------------------------------------------------

export class CanvasPen implements Pen {
  private readonly widths = new Map<string, number>();

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly font: string,
  ) {}

  line(a: Spot, b: Spot, colour: string, width: number): void {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(a.x, a.y);
    context.lineTo(b.x, b.y);
    context.stroke();
  }

  shape(corners: readonly Spot[], colour: string): void {
    this.context.fillStyle = colour;
    this.context.beginPath();
    corners.forEach(({ x, y }) => this.context.lineTo(x, y));
    this.context.fill();
  }

  disc({ x, y }: Spot, radius: number, colour: string): void {
    this.context.fillStyle = colour;
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.context.fill();
  }

  ring({ x, y }: Spot, radius: number, colour: string, width: number): void {
    this.context.strokeStyle = colour;
    this.context.lineWidth = width;
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.context.stroke();
  }

  text(text: string, { x, y }: Spot, size: number, bold: boolean, colour: string, halo: string): void {
    const { context } = this;
    context.font = this.fontOf(size, bold);
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = halo;
    context.fillStyle = colour;
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  }

  measure(text: string, size: number, bold: boolean): number {
    const key = `${size}${bold}${text}`;
    const known = this.widths.get(key);
    if (known !== undefined) return known;
    this.context.font = this.fontOf(size, bold);
    const found = this.context.measureText(text).width;
    this.widths.set(key, found);
    return found;
  }

  private fontOf(size: number, bold: boolean): string {
    return `${bold ? "500 " : ""}${size}px ${this.font}`;
  }
}

// --- as SVG ----------------------------------------------------------------------------------------------------------

export class SvgPen implements Pen {
  private readonly parts: string[] = [];

  constructor(
    private readonly size: { width: number; height: number },
    private readonly font: string,
    private readonly ground: string,
    readonly measure: Pen["measure"],
  ) {}

  line(a: Spot, b: Spot, colour: string, width: number): void {
    this.put(
      `<line x1="${n(a.x)}" y1="${n(a.y)}" x2="${n(b.x)}" y2="${n(b.y)}" stroke="${xml(colour)}" stroke-width="${width}"/>`,
    );
  }

  shape(corners: readonly Spot[], colour: string): void {
    this.put(`<polygon points="${corners.map(({ x, y }) => `${n(x)},${n(y)}`).join(" ")}" fill="${xml(colour)}"/>`);
  }

  disc({ x, y }: Spot, radius: number, colour: string): void {
    this.put(`<circle cx="${n(x)}" cy="${n(y)}" r="${n(radius)}" fill="${xml(colour)}"/>`);
  }

  ring({ x, y }: Spot, radius: number, colour: string, width: number): void {
    this.put(
      `<circle cx="${n(x)}" cy="${n(y)}" r="${n(radius)}" fill="none" stroke="${xml(colour)}" stroke-width="${width}"/>`,
    );
  }

  text(text: string, { x, y }: Spot, size: number, bold: boolean, colour: string, halo: string): void {
    const look = `font-size="${size}" font-weight="${bold ? 500 : 400}" fill="${xml(colour)}"`;
    const around = `stroke="${xml(halo)}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"`;
    this.put(`<text x="${n(x)}" y="${n(y)}" ${look} ${around}>${xml(text)}</text>`);
  }

  document(): string {
    const { width, height } = this.size;
    const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="${xml(this.font)}">`;
    return `${head}<rect width="100%" height="100%" fill="${xml(this.ground)}"/>${this.parts.join("")}</svg>\n`;
  }

  private put(part: string): void {
    this.parts.push(part);
  }
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text inside of XML, without what XML has no place for. */
export function xml(text: string): string {
  return text
    .replace(/[&<>"']/g, (sign) => ENTITIES[sign]!)
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "�");
}
