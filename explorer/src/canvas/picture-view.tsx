/** A scene, drawn. The canvas is for eyes and mice; whoever uses neither has the list beside it. */
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { counted } from "../format";
import { useEvent } from "../hooks";
import { useShortcut } from "../keys";
import { cssColour, onTheme } from "../theme";
import { Button } from "../ui/basics";
import { TypeLegend } from "./legend";
import { Colours, labelIn, type Look, SIGN_VARIABLES, signed } from "./look";
import type { Scene, Sign } from "./model";
import { createPainter, type EdgeStyle, type NodeStyle, type Painter, type Scheme, type Styles } from "./painter";

const MANY_NODES = 150; // so many are drawn smaller
const FEW_EDGES = 20; // only so few have room for all their names

interface Props {
  readonly scene: Scene;
  readonly selected: string | null;
  readonly marked?: ReadonlySet<string>; // nodes of a path
  readonly look: Look;
  readonly onSelect: (key: string | null) => void;
  readonly onOpen?: (key: string) => void;
  readonly view?: RefObject<PictureHandle | null>; // for those who want to move it
  readonly children?: ComponentChildren; // more tools
}

export interface PictureHandle {
  readonly painter: Painter | null;
  readonly styles: Styles;
  readonly size: { width: number; height: number };
}

interface Palette extends Scheme {
  readonly accent: string;
  readonly edge: string;
  readonly signs: Record<Sign, string>;
}

export function PictureView(props: Props) {
  const { scene } = props;
  const box = useRef<HTMLDivElement>(null);
  const version = useSceneVersion(scene);
  const colours = useMemo(() => new Colours(scene.nodes, props.look), [scene, version, props.look]);
  const [painter, styles] = usePainter(box, props, colours, version);
  useScrolling(box);
  if (props.view)
    props.view.current = {
      get painter() {
        return painter.current;
      },
      styles,
      get size() {
        return { width: box.current?.clientWidth ?? 0, height: box.current?.clientHeight ?? 0 };
      },
    };
  const { order, size } = scene.picture;
  const about = `${counted(order, "node")} and ${counted(size, "edge")} drawn. The list shows the same as text.`;
  return (
    <div class="picture">
      <div class="picture-box" ref={box} role="img" aria-label={about} data-nodes={order} data-edges={size} />
      <Tools painter={painter}>{props.children}</Tools>
      <TypeLegend legend={colours.legend} scene={scene} byType={props.look.colourBy === null} />
    </div>
  );
}

/** Something that draws the scene in a box, and draws it anew when it or its colours change. */
function usePainter(box: RefObject<HTMLDivElement | null>, props: Props, colours: Colours, version: number) {
  const { scene } = props;
  const painter = useRef<Painter | null>(null);
  const [palette, setPalette] = useState(readPalette);
  const latest = useRef({ props, colours, palette });
  latest.current = { props, colours, palette };
  const styles = useMemo(() => stylesOf(latest), []);
  const select = useEvent(props.onSelect);
  const open = useEvent((key: string) => props.onOpen?.(key));
  useEffect(() => onTheme(() => setPalette(readPalette())), []);
  useEffect(() => {
    if (!box.current) return;
    let gone = false;
    const hands = { select, open, moved: (key: string) => scene.pin(key, true) };
    void createPainter(scene.picture, box.current, styles, hands).then((made) => {
      if (gone) return made.destroy();
      painter.current = made;
      made.refresh();
    });
    return () => {
      gone = true;
      painter.current?.destroy();
      painter.current = null;
    };
  }, [scene]);
  useEffect(() => painter.current?.refresh(), [version, props.look, props.selected, props.marked, colours, palette]);
  return [painter, styles] as const;
}

/** A wheel scrolls the page as long as there is something to scroll; with Ctrl, or once the picture was clicked, it zooms. */
function useScrolling(box: RefObject<HTMLDivElement | null>): void {
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let held = false;
    const enter = (event: PointerEvent) => (held = event.composedPath().includes(element));
    const wheel = (event: WheelEvent) => {
      const page = document.documentElement;
      const covered = element.closest(".canvas-full") !== null;
      const scrolls = !covered && page.scrollHeight > page.clientHeight + 8;
      if (scrolls && !held && !event.ctrlKey && !event.metaKey) event.stopPropagation();
    };
    document.addEventListener("pointerdown", enter);
    element.addEventListener("wheel", wheel, { capture: true, passive: true });
    return () => {
      document.removeEventListener("pointerdown", enter);
      element.removeEventListener("wheel", wheel, { capture: true });
    };
  }, []);
}

interface ToolProps {
  readonly painter: { readonly current: Painter | null };
  readonly children?: ComponentChildren;
}

function Tools({ painter, children }: ToolProps) {
  useShortcut("+", "Zoom in", "Graph", () => painter.current?.zoom(1.3));
  useShortcut("-", "Zoom out", "Graph", () => painter.current?.zoom(1 / 1.3));
  useShortcut("0", "Show the whole graph", "Graph", () => painter.current?.fit());
  return (
    <div class="picture-tools">
      {children}
      <Button small aria-label="Zoom in" onClick={() => painter.current?.zoom(1.3)}>
        +
      </Button>
      <Button small aria-label="Zoom out" onClick={() => painter.current?.zoom(1 / 1.3)}>
        −
      </Button>
      <Button small onClick={() => painter.current?.fit()}>
        Fit
      </Button>
    </div>
  );
}

/** A number that changes whenever the scene does. */
export function useSceneVersion(scene: Scene): number {
  const [version, setVersion] = useState(0);
  useEffect(() => scene.onChange(() => setVersion((n) => n + 1)), [scene]);
  return version;
}

function readPalette(): Palette {
  return {
    ground: cssColour("--surface"),
    text: cssColour("--text"),
    muted: cssColour("--text-muted"),
    accent: cssColour("--accent"),
    edge: cssColour("--edge"),
    font: getComputedStyle(document.body).fontFamily,
    signs: {
      "+": cssColour(SIGN_VARIABLES["+"]),
      "−": cssColour(SIGN_VARIABLES["−"]),
      "~": cssColour(SIGN_VARIABLES["~"]),
    },
  };
}

function stylesOf(latest: { current: { props: Props; colours: Colours; palette: Palette } }): Styles {
  return {
    scheme: () => latest.current.palette,
    node: (key): NodeStyle => {
      const { props, colours, palette } = latest.current;
      const { node, pinned } = props.scene.picture.getNodeAttributes(key);
      const chosen = key === props.selected || props.marked?.has(key);
      const ring = chosen ? palette.accent : node.sign ? palette.signs[node.sign] : pinned ? palette.muted : null;
      const degree = props.scene.picture.degree(key);
      const scale = props.scene.picture.order > MANY_NODES ? 0.75 : 1;
      return {
        label: signed(labelIn(props.look, node), node.sign),
        colour: colours.of(node),
        size: Math.min(22, 8 + Math.sqrt(degree) * 1.7) * scale * (props.look.styles[node.type]?.size ?? 1),
        ring,
      };
    },
    edge: (key): EdgeStyle => {
      const { props, palette } = latest.current;
      const { picture } = props.scene;
      const { edge } = picture.getEdgeAttributes(key);
      const [from, to] = picture.extremities(key);
      const chosen =
        (props.selected !== null && (from === props.selected || to === props.selected)) ||
        (props.marked?.has(from) && props.marked.has(to));
      const colour = edge.sign ? palette.signs[edge.sign] : chosen ? palette.accent : palette.edge;
      const named = edge.sign !== undefined || chosen || picture.size <= FEW_EDGES;
      return {
        label: named ? signed(edge.label ?? edge.type, edge.sign) : "",
        colour,
        width: edge.sign || chosen ? 3 : 2,
      };
    },
  };
}
