/** What is done on a canvas: choose, expand, hide, connect. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Point } from "../api";
import { useHere } from "../context";
import { counted } from "../format";
import { asApiError } from "../hooks";
import { useShortcut } from "../keys";
import { toast } from "../ui/toast";
import { layOut } from "./layout";
import { type NodeAttributes, nodeKey, type NodeRef, type Scene } from "./model";
import { findPath } from "./paths";
import { GraphSource, type Way } from "./source";

export interface Exploring {
  readonly selected: string | null;
  readonly node: NodeAttributes | undefined; // what is selected, while it is there
  readonly marked: ReadonlySet<string> | undefined; // the nodes of a path
  readonly pathFrom: NodeRef | null; // a path from here waits for its end
  readonly choose: (key: string | null) => void;
  readonly expand: (key: string, way: Way, skip: number) => Promise<boolean>;
  readonly hide: (key: string) => void;
  readonly startPath: (from: NodeRef | null) => void;
}

export function useExploring(scene: Scene, point: Point): Exploring {
  const { client, catalog } = useHere();
  const source = useMemo(() => catalog && new GraphSource(client, point, catalog), [client, point, catalog]);
  const [selected, setSelected] = useState<string | null>(null);
  const [pathFrom, setPathFrom] = useState<NodeRef | null>(null);
  const [marked, setMarked] = useState<ReadonlySet<string>>();
  const node =
    selected !== null && scene.picture.hasNode(selected) ? scene.picture.getNodeAttributes(selected) : undefined;

  const leave = () => {
    setSelected(null);
    setMarked(undefined);
    setPathFrom(null);
  };
  useEffect(leave, [scene]);

  const expand = async (key: string, way: Way, skip: number) => {
    const found = await source?.neighbours(scene.picture.getNodeAttribute(key, "node"), way, skip);
    if (!found) return;
    const added = scene.add(found.nodes, found.edges, key);
    arrange(scene);
    toast(added ? `${counted(added, "node")} added` : "All of them were there already");
  };

  const connect = async (a: NodeRef, b: NodeRef) => {
    setPathFrom(null);
    const path = source && (await findPath(source, a, b));
    if (!path) return toast(`No path of at most six steps leads from ${a.id} to ${b.id}`, "bad");
    scene.add(path.nodes, path.edges, nodeKey(a));
    setMarked(new Set(path.nodes.map(nodeKey)));
    arrange(scene);
    toast(`A shortest path has ${counted(path.edges.length, "step")}`);
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

  useKeys(scene, { selected, node, pathFrom, choose, hide }, leave);
  return {
    selected,
    node,
    marked,
    pathFrom,
    choose,
    hide,
    expand: (key, way, skip) => told(expand(key, way, skip)),
    startPath: (from) => {
      setMarked(undefined);
      setPathFrom(from);
    },
  };
}

type Chosen = Pick<Exploring, "selected" | "node" | "pathFrom" | "choose" | "hide">;

function useKeys(scene: Scene, { selected, node, pathFrom, choose, hide }: Chosen, leave: () => void): void {
  const busy = selected !== null || pathFrom !== null;
  const chosen = node !== undefined;
  const pin = () => selected && scene.pin(selected, !node?.pinned);
  useShortcut("Escape", "Leave the node, or stop looking for a path", "Graph", leave, busy);
  useShortcut("x", "Hide the chosen node", "Graph", () => selected && hide(selected), chosen);
  useShortcut("p", "Pin the chosen node, or let it go", "Graph", pin, chosen);
  useShortcut("n", "Choose the next node", "Graph", () => choose(beside(scene, selected, 1)));
  useShortcut("N", "Choose the node before", "Graph", () => choose(beside(scene, selected, -1)));
}

/** Find new places for everything that is not pinned. */
export function arrange(scene: Scene): void {
  layOut(scene.picture);
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
