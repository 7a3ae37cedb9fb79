/** What is done on a canvas: choose, expand, hide, connect. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Point } from "../api";
import { useHere } from "../context";
import { counted } from "../format";
import { asApiError } from "../hooks";
import { useShortcut } from "../keys";
import { toast } from "../ui/toast";
import { arrangeAs, type Layout, LAYOUTS } from "./layout";
import { type NodeAttributes, nodeKey, type NodeRef, type Scene } from "./model";
import { findPath, type WalkedPath, walkedPath } from "./paths";
import { GraphSource, type Way } from "./source";

export interface Exploring {
  readonly selected: string | null;
  readonly node: NodeAttributes | undefined; // what is selected, while it is there
  readonly marked: ReadonlySet<string> | undefined; // the nodes of a path
  readonly path: WalkedPath | null;
  readonly source: GraphSource | undefined;
  readonly pathFrom: NodeRef | null; // a path from here waits for its end
  readonly choose: (key: string | null) => void;
  readonly expand: (key: string, way: Way, skip: number) => Promise<boolean>;
  readonly hide: (key: string) => void;
  readonly startPath: (from: NodeRef | null) => void;
  readonly leavePath: () => void;
  readonly bring: (ref: NodeRef) => Promise<boolean>; // a node of the graph that is not here yet
  readonly arrangeBy: (layout: Layout) => void;
}

export function useExploring(scene: Scene, point: Point): Exploring {
  const { client, catalog } = useHere();
  const source = useMemo(() => catalog && new GraphSource(client, point, catalog), [client, point, catalog]);
  const [selected, setSelected] = useState<string | null>(null);
  const [pathFrom, setPathFrom] = useState<NodeRef | null>(null);
  const [path, setPath] = useState<WalkedPath | null>(null);
  const marked = useMemo(() => (path ? new Set(path.nodes.map(nodeKey)) : undefined), [path]);
  const node =
    selected !== null && scene.picture.hasNode(selected) ? scene.picture.getNodeAttributes(selected) : undefined;

  const leave = () => {
    setSelected(null);
    setPath(null);
    setPathFrom(null);
  };
  useEffect(leave, [scene]);

  const expand = async (key: string, way: Way, skip: number) => {
    const found = await source?.neighbours(scene.picture.getNodeAttribute(key, "node"), way, skip);
    if (!found) return;
    const added = scene.add(found.nodes, found.edges, key);
    arrange(scene, key);
    toast(added ? `${counted(added, "node")} added` : "All of them were there already");
  };

  const connect = async (a: NodeRef, b: NodeRef) => {
    setPathFrom(null);
    const path = source && (await findPath(source, a, b));
    if (!path) return toast(`No path of at most six steps leads from ${a.id} to ${b.id}`, "bad");
    scene.bring(path.nodes, path.edges, nodeKey(a));
    arrange(scene, nodeKey(a));
    setPath(walkedPath(a, path.edges));
  };

  const bring = async (ref: NodeRef) => {
    const found = (await source?.nodes([ref])) ?? [];
    scene.bring(found, []);
    if (found.length > 0) setSelected(nodeKey(ref));
  };

  const choose = (key: string | null) => {
    if (key !== null && pathFrom && nodeKey(pathFrom) !== key)
      void told(connect(pathFrom, scene.picture.getNodeAttribute(key, "node")));
    setSelected(key);
  };
  const hide = (key: string) => {
    setSelected(null);
    scene.hide(key);
  };

  const arrangeBy = (layout: Layout) => {
    scene.layout = layout;
    arrange(scene, selected);
  };
  useKeys(scene, { selected, node, pathFrom, choose, hide, arrangeBy, path }, leave);
  return {
    selected,
    node,
    marked,
    path,
    source,
    arrangeBy,
    bring: (ref) => told(bring(ref)),
    leavePath: () => setPath(null),
    pathFrom,
    choose,
    hide,
    expand: (key, way, skip) => told(expand(key, way, skip)),
    startPath: (from) => {
      setPath(null);
      setPathFrom(from);
    },
  };
}

type Chosen = Pick<Exploring, "selected" | "node" | "pathFrom" | "choose" | "hide" | "arrangeBy" | "path">;

function useKeys(scene: Scene, { selected, node, pathFrom, choose, hide, ...more }: Chosen, leave: () => void): void {
  const busy = selected !== null || pathFrom !== null || more.path !== null;
  const next = LAYOUTS[(LAYOUTS.indexOf(scene.layout) + 1) % LAYOUTS.length]!;
  useShortcut("l", "Change the layout", "Graph", () => more.arrangeBy(next));
  const chosen = node !== undefined;
  const pin = () => selected && scene.pin(selected, !node?.pinned);
  useShortcut("Escape", "Leave the node, or stop looking for a path", "Graph", leave, busy);
  useShortcut("x", "Hide the chosen node", "Graph", () => selected && hide(selected), chosen);
  useShortcut("p", "Pin the chosen node, or let it go", "Graph", pin, chosen);
  useShortcut("n", "Choose the next node", "Graph", () => choose(beside(scene, selected, 1)));
  useShortcut("N", "Choose the node before", "Graph", () => choose(beside(scene, selected, -1)));
}

/** Find new places for everything that is not pinned. */
export function arrange(scene: Scene, root?: string | null): void {
  arrangeAs(scene.picture, scene.layout, root);
  scene.changed();
}

/** Work whose failure is told, and ends there; whether it went well. */
async function told(work: Promise<void>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    toast(asApiError(error).message, "bad");
    return false;
  }
}

function beside(scene: Scene, selected: string | null, step: number): string | null {
  const keys = scene.picture.nodes();
  const at = selected === null ? (step > 0 ? -1 : 0) : keys.indexOf(selected);
  return keys[(at + step + keys.length) % keys.length] ?? null;
}
