/** A scene, drawn. The canvas is for eyes and mice; whoever uses neither has the list beside it. */
import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { counted } from "../format";
import { useEvent } from "../hooks";
import { cssColour, onTheme } from "../theme";
import { Button } from "../ui/basics";
import { layOut } from "./layout";
import { Colours, labelOf, type Look, SIGN_VARIABLES, signed } from "./look";
import type { Scene, Sign } from "./model";
import { createPainter, type EdgeStyle, type NodeStyle, type Painter, type Scheme, type Styles } from "./painter";

const MANY_NODES = 150; // so many are drawn smaller
const LEGEND_MAX = 12;
const FEW_EDGES = 20; // only so few have room for all their names

interface Props {
  readonly scene: Scene;
  readonly selected: string | null;
  readonly marked?: ReadonlySet<string>; // nodes of a path
  readonly look: Look;
  readonly typeOrder: readonly string[];
  readonly onSelect: (key: string | null) => void;
  readonly onOpen?: (key: string) => void;
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
  const colours = useMemo(
    () => new Colours(scene.nodes, props.look.colourBy, props.typeOrder),
    [scene, version, props.look.colourBy, props.typeOrder],
  );
  const painter = usePainter(box, props, colours, version);
  const { order, size } = scene.picture;
  const about = `${counted(order, "node")} and ${counted(size, "edge")} drawn. The list shows the same as text.`;
  return (
    <div class="picture">
      <div class="picture-box" ref={box} role="img" aria-label={about} data-nodes={order} data-edges={size} />
      <Tools scene={scene} painter={painter} />
      <ul class="legend" aria-label="Colours">
        {colours.legend.slice(0, LEGEND_MAX).map(({ text, colour, count }) => (
          <li key={text}>
            <span class="dot" style={{ background: colour }} />
            {text} <span class="faint">{count}</span>
          </li>
        ))}
      </ul>
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
  const select = useEvent(props.onSelect);
  const open = useEvent((key: string) => props.onOpen?.(key));
  useEffect(() => onTheme(() => setPalette(readPalette())), []);
  useEffect(() => {
    if (!box.current) return;
    let gone = false;
    const hands = { select, open, moved: (key: string) => scene.pin(key, true) };
    void createPainter(scene.picture, box.current, stylesOf(latest), hands).then((made) => {
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
  return painter;
}

function Tools({ scene, painter }: { scene: Scene; painter: { readonly current: Painter | null } }) {
  const rearrange = () => {
    layOut(scene.picture);
    scene.changed();
    painter.current?.fit();
  };
  return (
    <div class="picture-tools">
      <Button small aria-label="Zoom in" onClick={() => painter.current?.zoom(1.3)}>
        +
      </Button>
      <Button small aria-label="Zoom out" onClick={() => painter.current?.zoom(1 / 1.3)}>
        −
      </Button>
      <Button small onClick={() => painter.current?.fit()}>
        Fit
      </Button>
      <Button small onClick={rearrange}>
        Rearrange
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
      return {
        label: signed(labelOf(node, props.look.labelBy), node.sign),
        colour: colours.of(node),
        size: Math.min(16, 6 + Math.sqrt(degree) * 1.4) * (props.scene.picture.order > MANY_NODES ? 0.75 : 1),
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
        width: edge.sign || chosen ? 2.5 : 1.8,
      };
    },
  };
}
