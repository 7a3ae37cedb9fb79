/** How a node looks: its colour and its label, by type or by a property. */
import type { Json, Row } from "../api";
import { valueText } from "../format";
import type { CanvasNode, Sign } from "./model";

/** Distinct on light and on dark ground (at least 3:1 against both). */
export const PALETTE = [
  "#5f6fd8",
  "#c2571a",
  "#1f8a5b",
  "#b8458f",
  "#8a7a10",
  "#0f86a8",
  "#d0433f",
  "#7a52c7",
  "#5e8a1e",
  "#9c6644",
] as const;
const OTHER = "#7d7d8c"; // what is rare, or has no value
const NONE = "no value";
const LABEL_CHARS = 28;
const PREFERRED = ["name", "title", "label", "display_name", "full_name", "slug", "code", "key"];

export interface Look {
  readonly colourBy: string | null; // a property; null: the type
  readonly labelBy: string | null; // a property; null: the best one
}

export interface Legend {
  readonly text: string;
  readonly colour: string;
  readonly count: number;
}

/** The colours of some nodes by what they have in common: types keep theirs, of values the commonest have one each. */
export class Colours {
  private readonly byText = new Map<string, string>();
  readonly legend: Legend[];

  constructor(
    nodes: readonly CanvasNode[],
    private readonly colourBy: string | null,
    typeOrder: readonly string[] = [],
  ) {
    const counts = new Map<string, number>();
    for (const node of nodes) counts.set(this.text(node), (counts.get(this.text(node)) ?? 0) + 1);
    const order = colourBy === null ? [...counts.keys()].sort(byOrder(typeOrder)) : byCount(counts);
    const places = colourBy === null ? [...typeOrder, ...order.filter((type) => !typeOrder.includes(type))] : order;
    for (const text of order) this.byText.set(text, this.colourAt(places.indexOf(text), text));
    this.legend = order.map((text) => ({ text, colour: this.byText.get(text)!, count: counts.get(text) ?? 0 }));
  }

  of(node: CanvasNode): string {
    return this.byText.get(this.text(node)) ?? OTHER;
  }

  private colourAt(place: number, text: string): string {
    const shared = this.colourBy !== null && (place >= PALETTE.length || text === NONE);
    return shared ? OTHER : PALETTE[place % PALETTE.length]!;
  }

  private text(node: CanvasNode): string {
    if (this.colourBy === null) return node.type;
    const value = node.properties[this.colourBy];
    return value === undefined || value === null ? NONE : valueText(value);
  }
}

function byOrder(order: readonly string[]): (a: string, b: string) => number {
  return (a, b) => order.indexOf(a) - order.indexOf(b) || (a < b ? -1 : 1);
}

function byCount(counts: Map<string, number>): string[] {
  return [...counts]
    .sort((a, b) => Number(a[0] === NONE) - Number(b[0] === NONE) || b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .map(([text]) => text);
}

/** The property that names a node best. */
export function labelProperty(properties: Row): string | null {
  for (const name of PREFERRED) if (isShort(properties[name])) return name;
  return Object.keys(properties).find((name) => isShort(properties[name])) ?? null;
}

export function labelOf(node: CanvasNode, labelBy: string | null): string {
  const property = labelBy ?? labelProperty(node.properties);
  const value = property === null ? undefined : node.properties[property];
  return shortened(value === undefined || value === null ? node.id : valueText(value));
}

export function signed(text: string, sign: Sign | undefined): string {
  return sign ? `${sign} ${text}` : text;
}

export const SIGN_VARIABLES: Record<Sign, string> = { "+": "--good", "−": "--bad", "~": "--warn" };

function isShort(value: Json | undefined): boolean {
  return typeof value === "string" && value !== "" && value.length <= 80;
}

function shortened(text: string): string {
  return text.length > LABEL_CHARS ? `${text.slice(0, LABEL_CHARS - 1)}…` : text;
}
