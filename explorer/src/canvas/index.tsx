/** The graph canvas: a picture, its tools, the details of what is chosen, and all of it again as a list. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Point } from "../api";
import { useHere } from "../context";
import { count, counted } from "../format";
import { asApiError } from "../hooks";
import { useShortcut } from "../keys";
import { Button, Notice, Tabs } from "../ui/basics";
import { toast } from "../ui/toast";
import { Details } from "./details";
import { layOut } from "./layout";
import { NodeList } from "./list";
import type { Look } from "./look";
import { type NodeRef, type Scene, MORE_NODES, nodeKey } from "./model";
import { findPath } from "./paths";
import { PictureView, useSceneVersion } from "./picture-view";
import { GraphSource, typeNames, type Way } from "./source";

/** `point` is the state the scene was made of: what is added comes from the same. */
export function GraphCanvas({ scene, point, label }: { scene: Scene; point: Point; label: string }) {
  const { client, catalog } = useHere();
  const source = useMemo(() => catalog && new GraphSource(client, point, catalog), [client, point, catalog]);
  const order = useMemo(() => (catalog ? typeNames(catalog) : []), [catalog]);
  useSceneVersion(scene);
  const [view, setView] = useState<"picture" | "list">("picture");
  const [look, setLook] = useState<Look>({ colourBy: null, labelBy: null });
  const [selected, setSelected] = useState<string | null>(null);
  const [pathFrom, setPathFrom] = useState<NodeRef | null>(null);
  const [marked, setMarked] = useState<ReadonlySet<string>>();

  useEffect(() => {
    setSelected(null);
    setMarked(undefined);
    setPathFrom(null);
  }, [scene]);

  const node = selected !== null && scene.picture.hasNode(selected) ? scene.picture.getNodeAttributes(selected) : undefined;

  const expand = async (key: string, way: Way, skip: number) => {
    if (!source) return;
    const ref = scene.picture.getNodeAttribute(key, "node");
    try {
      const found = await source.neighbours(ref, way, skip);
      const added = scene.add(found.nodes, found.edges, key);
      arrange(scene);
      toast(added ? `${counted(added, "node")} added` : "All of them were there already");
    } catch (error) {
      toast(asApiError(error).message, "bad");
    }
  };

  const choose = (key: string | null) => {
    if (key !== null && pathFrom && nodeKey(pathFrom) !== key) void connect(pathFrom, scene.picture.getNodeAttribute(key, "node"));
    setSelected(key);
  };

  const connect = async (a: NodeRef, b: NodeRef) => {
    setPathFrom(null);
    if (!source) return;
    try {
      const path = await findPath(source, a, b);
      if (!path) return toast(`No path of at most six steps leads from ${a.id} to ${b.id}`, "bad");
      scene.add(path.nodes, path.edges, nodeKey(a));
      setMarked(new Set(path.nodes.map(nodeKey)));
      arrange(scene);
      toast(`A shortest path has ${counted(path.edges.length, "step")}`);
    } catch (error) {
      toast(asApiError(error).message, "bad");
    }
  };

  const hide = (key: string) => {
    setSelected(null);
    scene.hide(key);
  };

  useShortcut("Escape", "Leave the node, or stop looking for a path", "Graph", () => { setSelected(null); setPathFrom(null); setMarked(undefined); }, selected !== null || pathFrom !== null);
  useShortcut("x", "Hide the chosen node", "Graph", () => selected && hide(selected), node !== undefined);
  useShortcut("p", "Pin the chosen node, or let it go", "Graph", () => selected && scene.pin(selected, !node?.pinned), node !== undefined);
  useShortcut("n", "Choose the next node", "Graph", () => choose(neighbour(scene, selected, 1)));
  useShortcut("N", "Choose the node before", "Graph", () => choose(neighbour(scene, selected, -1)));

  return (
    <div class="canvas" aria-label={label} role="group">
      <div class="canvas-bar">
        <Tabs label="Show the graph as" value={view} onChange={setView} options={[{ value: "picture", label: "Picture" }, { value: "list", label: "List" }]} />
        <LookControls scene={scene} look={look} onChange={setLook} />
        <span class="muted grow canvas-count">{counted(scene.picture.order, "node")}, {counted(scene.picture.size, "edge")}</span>
        {scene.hiddenCount > 0 && <Button small onClick={() => scene.unhide()}>Show {counted(scene.hiddenCount, "hidden node")}</Button>}
        {scene.waitingCount > 0 && (
          <Button small onClick={() => { scene.showMore(); arrange(scene); }}>
            Show {count(Math.min(MORE_NODES, scene.waitingCount))} more of {count(scene.waitingCount)}
          </Button>
        )}
      </div>
      {pathFrom && (
        <Notice>
          <div class="row">
            <span>Choose the node to which a path from <strong>{pathFrom.id}</strong> should lead.</span>
            <Button small onClick={() => setPathFrom(null)}>Cancel</Button>
          </div>
        </Notice>
      )}
      <div class={node ? "canvas-main with-details" : "canvas-main"}>
        {view === "picture" ? (
          <PictureView scene={scene} selected={selected} marked={marked} look={look} typeOrder={order} onSelect={choose} onOpen={setSelected} />
        ) : (
          <NodeList scene={scene} look={look} selected={selected} onSelect={choose} onHide={hide} />
        )}
        {node && selected !== null && (
          <Details key={selected} node={node.node} point={point} pinned={node.pinned}
            onExpand={(way, skip) => expand(selected, way, skip)}
            onPin={() => scene.pin(selected, !node.pinned)}
            onHide={() => hide(selected)}
            onPath={() => { setMarked(undefined); setPathFrom(node.node); }}
            onClose={() => setSelected(null)} />
        )}
      </div>
    </div>
  );
}

function arrange(scene: Scene): void {
  layOut(scene.picture);
  scene.changed();
}

function neighbour(scene: Scene, selected: string | null, step: number): string | null {
  const keys = scene.picture.nodes();
  const at = selected === null ? (step > 0 ? -1 : 0) : keys.indexOf(selected);
  return keys[(at + step + keys.length) % keys.length] ?? null;
}

function LookControls({ scene, look, onChange }: { scene: Scene; look: Look; onChange: (look: Look) => void }) {
  const names = [...new Set(scene.nodes.flatMap((node) => Object.keys(node.properties)))].sort();
  const choice = (label: string, value: string | null, none: string, set: (name: string | null) => void) => (
    <label class="inline-label">
      {label}
      <select value={value ?? ""} onChange={(event) => set(event.currentTarget.value || null)}>
        <option value="">{none}</option>
        {names.map((name) => <option key={name} value={name}>{name}</option>)}
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
