import { describe, expect, it } from "vitest";
import { layOut } from "../src/canvas/layout";
import { Colours, labelOf, type Look } from "../src/canvas/look";
import { type CanvasNode, NODES_MAX, Scene } from "../src/canvas/model";

function node(id: string, type = "T", properties = {}): CanvasNode {
  return { type, id, properties };
}

function chain(length: number) {
  const nodes = Array.from({ length }, (_, i) => node(String(i)));
  const edges = nodes.slice(1).map((to, i) => ({ type: "E", id: `e${i}`, from: nodes[i]!, to }));
  return { nodes, edges };
}

describe("a scene", () => {
  it("shows no more than the cap, and more when it is asked", () => {
    const scene = new Scene();
    const { nodes, edges } = chain(NODES_MAX + 150);
    expect(scene.add(nodes, edges)).toBe(NODES_MAX);
    expect(scene.waitingCount).toBe(150);
    expect(scene.picture.size).toBe(NODES_MAX - 1);
    scene.showMore();
    expect(scene.picture.order).toBe(NODES_MAX + 100);
    expect(scene.picture.size).toBe(NODES_MAX + 99);
  });

  it("takes a hidden node away with its edges, and brings both back", () => {
    const scene = new Scene();
    scene.add(...(Object.values(chain(3)) as [CanvasNode[], ReturnType<typeof chain>["edges"]]));
    scene.hide("T:1");
    expect([scene.picture.order, scene.picture.size, scene.hiddenCount]).toEqual([2, 0, 1]);
    scene.add([node("1")], []);
    expect(scene.picture.order).toBe(2);
    scene.unhide();
    expect([scene.picture.order, scene.picture.size]).toEqual([3, 2]);
  });

  it("draws a pair once, however it was found", () => {
    const scene = new Scene();
    const [a, b] = [node("a"), node("b")];
    scene.add([a, b], [{ type: "E", from: a, to: b, label: "E" }]);
    scene.add([], [{ type: "E", id: "e1", from: a, to: b }]);
    scene.add([], [{ type: "E", from: a, to: b, label: "E" }]);
    expect(scene.edges.map((e) => e.id)).toEqual(["e1"]);
  });

  it("is laid out the same way every time, and leaves pinned nodes alone", () => {
    const places = () => {
      const scene = new Scene();
      const { nodes, edges } = chain(20);
      scene.add(nodes, edges);
      scene.picture.mergeNodeAttributes("T:0", { x: 3, y: 4 });
      scene.pin("T:0", true);
      layOut(scene.picture, 10_000);
      return scene.picture.mapNodes((_, { x, y }) => [x, y]);
    };
    const first = places();
    expect(first[0]).toEqual([3, 4]);
    expect(first.flat().every(Number.isFinite)).toBe(true);
    expect(places()).toEqual(first);
  });
});

const LOOK: Look = { colourBy: null, styles: {}, keys: {}, order: [] };

describe("looks", () => {
  it("name a node by its best property, or by its id", () => {
    expect(labelOf(node("7", "T", { size: 3, name: "Ada" }), null)).toBe("Ada");
    expect(labelOf(node("7", "T", { size: 3 }), null)).toBe("7");
    expect(labelOf(node("7", "T", { size: 3 }), "size")).toBe("3");
  });

  it("give one colour to what has no value, and list it last", () => {
    const nodes = [node("1", "T", {}), node("2", "T", { c: null }), node("3", "T", { c: "x" })];
    const { legend } = new Colours(nodes, { ...LOOK, colourBy: "c" });
    expect(legend.map(({ text, count }) => [text, count])).toEqual([
      ["x", 1],
      ["no value", 2],
    ]);
  });

  it("give a type the same colour whatever else is shown", () => {
    const order = ["A", "B", "C"];
    const alone = new Colours([node("1", "C")], { ...LOOK, order }).of(node("1", "C"));
    const among = new Colours([node("1", "A"), node("2", "C")], { ...LOOK, order }).of(node("2", "C"));
    expect(alone).toBe(among);
  });
});
