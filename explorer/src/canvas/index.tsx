/** The graph canvas: a picture, its tools, the details of what is chosen, and all of it again as a list. */
import { useMemo, useState } from "preact/hooks";
import type { Point } from "../api";
import { useHere } from "../context";
import { count, counted } from "../format";
import { Button, Notice, Tabs } from "../ui/basics";
import { Details } from "./details";
import { arrange, type Exploring, useExploring } from "./exploring";
import { NodeList } from "./list";
import type { Look } from "./look";
import { MORE_NODES, type Scene } from "./model";
import { PictureView, useSceneVersion } from "./picture-view";
import { typeNames } from "./source";

type View = "picture" | "list";

/** `point` is the state the scene was made of: what is added comes from the same. */
export function GraphCanvas({ scene, point, label }: { scene: Scene; point: Point; label: string }) {
  const { catalog } = useHere();
  const order = useMemo(() => (catalog ? typeNames(catalog) : []), [catalog]);
  const exploring = useExploring(scene, point);
  const { selected, node, pathFrom } = exploring;
  const [view, setView] = useState<View>("picture");
  const [look, setLook] = useState<Look>({ colourBy: null, labelBy: null });
  useSceneVersion(scene);
  return (
    <div class="canvas" aria-label={label} role="group">
      <CanvasBar scene={scene} view={view} look={look} onView={setView} onLook={setLook} />
      {pathFrom && <PathNotice id={pathFrom.id} onCancel={() => exploring.startPath(null)} />}
      <div class={node ? "canvas-main with-details" : "canvas-main"}>
        {view === "picture" ? (
          <PictureView
            scene={scene}
            selected={selected}
            marked={exploring.marked}
            look={look}
            typeOrder={order}
            onSelect={exploring.choose}
            onOpen={exploring.choose}
          />
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
  readonly look: Look;
  readonly onView: (view: View) => void;
  readonly onLook: (look: Look) => void;
}

function CanvasBar({ scene, view, look, onView, onLook }: BarProps) {
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
      <LookControls scene={scene} look={look} onChange={onLook} />
      <span class="muted grow canvas-count">
        {counted(scene.picture.order, "node")}, {counted(scene.picture.size, "edge")}
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
          Choose the node to which a path from <strong>{id}</strong> should lead.
        </span>
        <Button small onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </Notice>
  );
}

function LookControls({ scene, look, onChange }: { scene: Scene; look: Look; onChange: (look: Look) => void }) {
  const names = [...new Set(scene.nodes.flatMap((node) => Object.keys(node.properties)))].sort();
  const choice = (label: string, value: string | null, none: string, set: (name: string | null) => void) => (
    <label class="inline-label">
      {label}
      <select value={value ?? ""} onChange={(event) => set(event.currentTarget.value || null)}>
        <option value="">{none}</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      {choice("Colour", look.colourBy, "by type", (colourBy) => onChange({ ...look, colourBy }))}
      {choice("Label", look.labelBy, "best property", (labelBy) => onChange({ ...look, labelBy }))}
    </>
  );
}
