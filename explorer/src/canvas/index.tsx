/** The graph canvas: a picture, its tools, the details of what is chosen, and all of it again as a list. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Point } from "../api";
import { saveAs } from "../clipboard";
import { useHere } from "../context";
import { count, counted, visible } from "../format";
import { useShortcut } from "../keys";
import { Button, Notice, Tabs } from "../ui/basics";
import { Menu } from "../ui/menu";
import { Details } from "./details";
import { arrange, type Exploring, useExploring } from "./exploring";
import { asPng, asSvg } from "./export";
import { FindNode } from "./find-node";
import { type Layout, LAYOUTS } from "./layout";
import { NodeList } from "./list";
import { lookOf } from "./look";
import { MORE_NODES, nodeKey, type Scene } from "./model";
import { PathStrip } from "./path-strip";
import { type PictureHandle, PictureView, useSceneVersion } from "./picture-view";

type View = "picture" | "list";
const AFTER_DRAWING_MILLISECONDS = 60; // the details may open beside it, and take room

interface CanvasProps {
  readonly scene: Scene;
  readonly point: Point; // the state the scene was made of: what is added comes from the same
  readonly label: string;
  readonly note?: string; // what of it is drawn
}

export function GraphCanvas({ scene, point, label, note }: CanvasProps) {
  const { catalog, styles } = useHere();
  const exploring = useExploring(scene, point);
  const { selected, node, pathFrom, path } = exploring;
  const [view, setView] = useState<View>("picture");
  const [full, setFull] = useState(false);
  const [colourBy, setColourBy] = useState<string | null>(null);
  const look = useMemo(() => lookOf(catalog, styles, colourBy), [catalog, styles, colourBy]);
  const picture = useRef<PictureHandle>(null);
  useSceneVersion(scene);
  const painter = () => picture.current?.painter;
  const fitPath = () => painter()?.fit(path?.nodes.map(nodeKey));
  useEffect(() => {
    if (!path) return;
    const timer = setTimeout(fitPath, AFTER_DRAWING_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [path]);
  const fill = (now: boolean) => {
    setFull(now);
    setTimeout(() => painter()?.fit(path?.nodes.map(nodeKey)), AFTER_DRAWING_MILLISECONDS);
  };
  useShortcut("f", "Fill the window with the graph, or leave that", "Graph", () => fill(!full));
  useShortcut("Escape", "Leave the full window", "Graph", () => fill(false), full && selected === null);
  const choose = (key: string) => {
    exploring.choose(key);
    if (!pathFrom) painter()?.centre(key);
  };
  return (
    <div class={full ? "canvas canvas-full" : "canvas"} aria-label={label} role="group">
      <CanvasBar scene={scene} view={view} colourBy={colourBy} note={note} onView={setView} onColour={setColourBy}>
        <FindNode
          scene={scene}
          look={look}
          source={exploring.source}
          onChoose={choose}
          onBring={(ref) => void exploring.bring(ref).then((done) => done && painter()?.centre(nodeKey(ref)))}
        />
      </CanvasBar>
      {pathFrom && <PathNotice id={pathFrom.id} onCancel={() => exploring.startPath(null)} />}
      {path && (
        <PathStrip
          path={path}
          scene={scene}
          look={look}
          onStep={choose}
          onFit={fitPath}
          onClose={exploring.leavePath}
        />
      )}
      <div class={node ? "canvas-main with-details" : "canvas-main"}>
        {view === "picture" ? (
          <PictureView
            scene={scene}
            selected={selected}
            marked={exploring.marked}
            look={look}
            view={picture}
            onSelect={exploring.choose}
            onOpen={exploring.choose}
          >
            <PictureActions scene={scene} picture={picture} exploring={exploring} full={full} onFull={fill} />
          </PictureView>
        ) : (
          <NodeList scene={scene} look={look} selected={selected} onSelect={exploring.choose} onHide={exploring.hide} />
        )}
        {node && selected !== null && (
          <Chosen key={selected} scene={scene} chosen={selected} point={point} exploring={exploring} />
        )}
      </div>
    </div>
  );
}

interface ActionProps {
  readonly scene: Scene;
  readonly picture: { readonly current: PictureHandle | null };
  readonly exploring: Exploring;
  readonly full: boolean;
  readonly onFull: (full: boolean) => void;
}

const LAYOUT_NAMES: Record<Layout, string> = { force: "Force", layered: "Layered", radial: "Radial" };

/** Layout, the picture as a file, and the whole window for it. */
function PictureActions({ scene, picture, exploring, full, onFull }: ActionProps) {
  const { graph } = useHere().route;
  const save = async (make: typeof asSvg | typeof asPng, ending: string) => {
    const handle = picture.current;
    if (handle) saveAs(await make(scene.picture, handle.styles, handle.size), `${graph}.${ending}`);
  };
  const arrangeBy = (layout: Layout) => {
    exploring.arrangeBy(layout);
    picture.current?.painter?.fit();
  };
  return (
    <>
      <label class="layout-choice">
        <span class="hidden-visually">Layout</span>
        <select value={scene.layout} onChange={(event) => arrangeBy(event.currentTarget.value as Layout)}>
          {LAYOUTS.map((layout) => (
            <option key={layout} value={layout}>
              {LAYOUT_NAMES[layout]}
            </option>
          ))}
        </select>
      </label>
      <Menu
        label="Save"
        name="Save the picture"
        class="menu-up"
        items={[
          { label: "PNG", hint: "picture", run: () => void save(asPng, "png") },
          { label: "SVG", hint: "drawing", run: () => void save(asSvg, "svg") },
        ]}
      />
      <Button small aria-pressed={full} title="Full window (f)" onClick={() => onFull(!full)}>
        {full ? "Leave full window" : "Full window"}
      </Button>
    </>
  );
}

function Chosen({
  scene,
  chosen,
  point,
  exploring,
}: {
  scene: Scene;
  chosen: string;
  point: Point;
  exploring: Exploring;
}) {
  const { node, pinned } = scene.picture.getNodeAttributes(chosen);
  return (
    <Details
      node={node}
      point={point}
      pinned={pinned}
      onExpand={(way, skip) => exploring.expand(chosen, way, skip)}
      onPin={() => scene.pin(chosen, !pinned)}
      onHide={() => exploring.hide(chosen)}
      onPath={() => exploring.startPath(node)}
      onClose={() => exploring.choose(null)}
    />
  );
}

interface BarProps {
  readonly scene: Scene;
  readonly view: View;
  readonly colourBy: string | null;
  readonly note: string | undefined;
  readonly onView: (view: View) => void;
  readonly onColour: (property: string | null) => void;
  readonly children: ComponentChildren;
}

function CanvasBar({ scene, view, colourBy, note, onView, onColour, children }: BarProps) {
  const more = () => {
    scene.showMore();
    arrange(scene);
  };
  return (
    <div class="canvas-bar">
      <Tabs
        label="Show the graph as"
        value={view}
        onChange={onView}
        options={[
          { value: "picture", label: "Picture" },
          { value: "list", label: "List" },
        ]}
      />
      {children}
      <ColourChoice scene={scene} value={colourBy} onChange={onColour} />
      <span class="muted grow canvas-count">
        {counted(scene.picture.order, "node")}, {counted(scene.picture.size, "edge")}
        {note ? ` ${note}` : ""}
      </span>
      {scene.hiddenCount > 0 && (
        <Button small onClick={() => scene.unhide()}>
          Show {counted(scene.hiddenCount, "hidden node")}
        </Button>
      )}
      {scene.waitingCount > 0 && (
        <Button small onClick={more}>
          Show {count(Math.min(MORE_NODES, scene.waitingCount))} more of {count(scene.waitingCount)}
        </Button>
      )}
    </div>
  );
}

function PathNotice({ id, onCancel }: { id: string; onCancel: () => void }) {
  return (
    <Notice>
      <div class="row">
        <span>
          Choose the node to which a path from <strong>{visible(id)}</strong> should lead: click it, or find it.
        </span>
        <Button small onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </Notice>
  );
}

interface ColourProps {
  readonly scene: Scene;
  readonly value: string | null;
  readonly onChange: (property: string | null) => void;
}

function ColourChoice({ scene, value, onChange }: ColourProps) {
  const names = [...new Set(scene.nodes.flatMap((node) => Object.keys(node.properties)))].sort();
  return (
    <label class="inline-label">
      Colour
      <select value={value ?? ""} onChange={(event) => onChange(event.currentTarget.value || null)}>
        <option value="">by type</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
