/** What draws a picture: with WebGL, or on a plain canvas where there is none. */
import type { Picture } from "./model";

export interface NodeStyle {
  readonly label: string;
  readonly colour: string;
  readonly size: number;
  readonly ring: string | null; // the colour of a ring: selected, pinned, or signed
}

export interface EdgeStyle {
  readonly label: string;
  readonly colour: string;
  readonly width: number;
}

export interface Scheme {
  readonly ground: string;
  readonly text: string;
  readonly muted: string;
  readonly font: string;
}

export interface Styles {
  readonly node: (key: string) => NodeStyle;
  readonly edge: (key: string) => EdgeStyle;
  readonly scheme: () => Scheme;
}

export interface Hands {
  readonly select: (key: string | null) => void;
  readonly open: (key: string) => void;
  readonly moved: (key: string) => void;
}

export interface Painter {
  /** Draw anew: the picture or the styles have changed. */
  refresh(): void;
  /** Show everything, or some nodes. */
  fit(keys?: readonly string[]): void;
  /** Bring a node into the middle. */
  centre(key: string): void;
  zoom(factor: number): void;
  destroy(): void;
}

export async function createPainter(
  picture: Picture,
  box: HTMLElement,
  styles: Styles,
  hands: Hands,
): Promise<Painter> {
  if (hasWebGL()) {
    const { WebGLPainter } = await import("./painter-webgl");
    return new WebGLPainter(picture, box, styles, hands);
  }
  const { PlainPainter } = await import("./painter-plain");
  return new PlainPainter(picture, box, styles, hands);
}

function hasWebGL(): boolean {
  try {
    return document.createElement("canvas").getContext("webgl2") !== null;
  } catch {
    return false;
  }
}
