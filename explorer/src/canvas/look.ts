/** How a node looks: its colour, its label and its size, by type or by a property. What is chosen for a type is kept. */
import type { Catalog, Json, Row } from "../api";
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

/** What was chosen for a type. */
export interface TypeStyle {
  readonly colour?: string;
  readonly labelBy?: string; // a property
  readonly size?: number; // times the usual
}
export type TypeStyles = Readonly<Record<string, TypeStyle>>;

/** All that decides how nodes look. */
export interface Look {
  readonly colourBy: string | null; // a property; null: the type
  readonly styles: TypeStyles;
  readonly keys: Readonly<Record<string, readonly string[]>>; // the key of each type
  readonly order: readonly string[]; // of types, which colours follow
}

export function lookOf(catalog: Catalog | undefined, styles: TypeStyles, colourBy: string | null = null): Look {
  const nodes = catalog?.nodes ?? [];
  return {
    colourBy,
    styles,
    keys: Object.fromEntries(nodes.map((node) => [node.name, node.key])),
    order: nodes.map((node) => node.name),
  };
}

/** The colour of a type, the same wherever it is shown. */
export function typeColour({ styles, order }: Pick<Look, "styles" | "order">, type: string): string {
  const chosen = styles[type]?.colour;
  if (chosen && (PALETTE as readonly string[]).includes(chosen)) return chosen;
  const place = order.indexOf(type);
  return place < 0 ? OTHER : PALETTE[place % PALETTE.length]!;
}

export interface Legend {
  readonly text: string;
  readonly colour: string;
  readonly count: number;
}

/** The colours of some nodes by what they have in common: types have theirs, of values the commonest have one each. */
export class Colours {
  private readonly byText = new Map<string, string>();
  readonly legend: Legend[];

  constructor(
    nodes: readonly CanvasNode[],
    private readonly look: Look,
  ) {
    const counts = new Map<string, number>();
    for (const node of nodes) counts.set(this.text(node), (counts.get(this.text(node)) ?? 0) + 1);
    const order = look.colourBy === null ? [...counts.keys()].sort(byOrder(look.order)) : byCount(counts);
    for (const [place, text] of order.entries()) this.byText.set(text, this.colourAt(place, text));
    this.legend = order.map((text) => ({ text, colour: this.byText.get(text)!, count: counts.get(text) ?? 0 }));
  }

  of(node: CanvasNode): string {
    return this.byText.get(this.text(node)) ?? OTHER;
  }

  private colourAt(place: number, text: string): string {
    if (this.look.colourBy === null) return typeColour(this.look, text);
    return place >= PALETTE.length || text === NONE ? OTHER : PALETTE[place]!;
  }

  private text(node: CanvasNode): string {
    if (this.look.colourBy === null) return node.type;
    const value = node.properties[this.look.colourBy];
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

/** What a node is called: the property that was chosen for its type, else its key, else what names it best. */
export function labelOf(node: CanvasNode, labelBy: string | null | undefined, key: readonly string[] = []): string {
  if (labelBy) return shortened(textOf(node.properties[labelBy]) ?? node.id);
  const keyed = key.map((name) => textOf(node.properties[name]));
  if (key.length > 0 && keyed.every((part) => part !== null)) return shortened(keyed.join(" · "));
  const best = labelProperty(node.properties);
  return shortened((best && textOf(node.properties[best])) ?? valueText(node.id));
}

export function labelIn(look: Look, node: CanvasNode): string {
  return labelOf(node, look.styles[node.type]?.labelBy, look.keys[node.type]);
}

/** The property that names a node best, where it has no key. */
export function labelProperty(properties: Row): string | null {
  for (const name of PREFERRED) if (isShort(properties[name])) return name;
  return Object.keys(properties).find((name) => isShort(properties[name])) ?? null;
}

function textOf(value: Json | undefined): string | null {
  return value === undefined || value === null || value === "" || isNoNumber(value) ? null : valueText(value);
}

/** What JSON writes for a number that is none says nothing about a node. */
function isNoNumber(value: Json): boolean {
  return typeof value === "string" && /^-?(NaN|inf|Infinity)$/i.test(value);
}

export function signed(text: string, sign: Sign | undefined): string {
  return sign ? `${sign} ${text}` : text;
}

export const SIGN_VARIABLES: Record<Sign, string> = { "+": "--good", "−": "--bad", "~": "--warn" };

function isShort(value: Json | undefined): boolean {
  return typeof value === "string" && value !== "" && value.length <= 80 && !isNoNumber(value);
}

function shortened(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > LABEL_CHARS ? `${line.slice(0, LABEL_CHARS - 1)}…` : line;
}
