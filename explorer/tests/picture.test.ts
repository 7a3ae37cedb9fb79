import { describe, expect, it } from "vitest";
import { drawPicture, fitted, placesOf, SvgPen, xml } from "../src/canvas/draw";
import { type LabelItem, overlap, placeLabels } from "../src/canvas/labels";
import { arrangeAs, LAYOUTS } from "../src/canvas/layout";
import { labelOf } from "../src/canvas/look";
import { generator, Scene } from "../src/canvas/model";
import { walkedPath } from "../src/canvas/paths";
import { share, valueText } from "../src/format";
import { parts } from "../src/ui/prose";
import { sortedBy } from "../src/ui/table";

const WINDOW = { width: 900, height: 600 };

function crowd(count: number): LabelItem[] {
  const random = generator(3);
  return Array.from({ length: count }, (_, i) => ({
    key: String(i),
    text: `node ${i}`,
    x: random() * WINDOW.width,
    y: random() * WINDOW.height,
    radius: 8,
    width: 60,
    weight: i,
  }));
}

describe("labels", () => {
  it("never lie on top of each other, or outside", () => {
    const placed = placeLabels(crowd(300), WINDOW);
    expect(placed.length).toBeGreaterThan(60);
    const boxes = placed.map(({ x, y }) => ({ left: x, right: x + 60, top: y - 11, bottom: y + 4 }));
    boxes.forEach((one, i) => boxes.slice(i + 1).forEach((other) => expect(overlap(one, other)).toBe(false)));
    expect(boxes.every((box) => box.left >= 0 && box.right <= WINDOW.width)).toBe(true);
  });

  it("go to what matters first, and to what is chosen always", () => {
    const items = crowd(300).map((item) => ({ ...item, forced: item.key === "0" }));
    const placed = new Set(placeLabels(items, WINDOW).map(({ key }) => key));
    expect(placed.has("0")).toBe(true);
    expect(placed.has("299")).toBe(true);
  });

  it("keep clear of the edges of their node where there is room", () => {
    const node = { key: "a", text: "a name", x: 300, y: 200, radius: 8, width: 60, weight: 1 };
    const beside = (edges: number[]) => placeLabels([{ ...node, edges }], WINDOW)[0]!;
    expect(beside([]).x).toBeGreaterThan(308); // to the right, as people read
    expect(beside([0]).x).toBe(270); // below
    expect(beside([0, Math.PI / 2]).x).toBeLessThan(300 - 60); // to the left
    expect(beside([0, 1, 2, 3, 4, 5, 6]).x).toBeGreaterThan(308); // edges everywhere: as without
  });

  it("are keys, and never what is not a number", () => {
    const node = (properties: object) => ({ type: "T", id: "7", properties: properties as never });
    expect(labelOf(node({ isbn: "0-1", title: "Tide" }), null, ["isbn"])).toBe("0-1");
    expect(labelOf(node({ a: "x", b: 2 }), null, ["a", "b"])).toBe("x · 2");
    expect(labelOf(node({ isbn: "0-1", title: "Tide" }), "title", ["isbn"])).toBe("Tide");
    expect(labelOf(node({ depth: "NaN", zone: "north" }), null)).toBe("north");
    expect(labelOf(node({ depth: "-Infinity" }), null)).toBe("7");
  });
});

function scene(edges: readonly (readonly [string, string])[]): Scene {
  const made = new Scene();
  const ids = [...new Set(edges.flat())];
  const ref = (id: string) => ({ type: "T", id });
  made.add(
    ids.map((id) => ({ ...ref(id), properties: {} })),
    edges.map(([a, b], i) => ({ type: "E", id: `e${i}`, from: ref(a), to: ref(b) })),
  );
  return made;
}

describe("layouts", () => {
  const tree = [["a", "b"], ["a", "c"], ["b", "d"], ["b", "e"], ["c", "f"], ["f", "a"]] as const; // prettier-ignore

  it("place every node somewhere, circles and lonely nodes too", () => {
    for (const layout of LAYOUTS) {
      const { picture } = scene([...tree, ["x", "x"]]);
      arrangeAs(picture, layout);
      const places = placesOf(picture);
      expect(places.flatMap(({ x, y }) => [x, y]).every(Number.isFinite)).toBe(true);
      expect(new Set(places.map(({ x, y }) => `${x.toFixed(2)} ${y.toFixed(2)}`)).size).toBe(7);
    }
  });

  it("go along the edges in layers", () => {
    const { picture } = scene([["a", "b"], ["b", "c"], ["a", "d"]]); // prettier-ignore
    arrangeAs(picture, "layered");
    const x = (id: string) => picture.getNodeAttribute(`T:${id}`, "x");
    expect([x("a") < x("b"), x("b") < x("c"), x("d")]).toEqual([true, true, x("b")]);
  });

  it("go around the node that is asked for", () => {
    const { picture } = scene(tree);
    arrangeAs(picture, "radial", "T:b");
    const away = (id: string) =>
      Math.hypot(picture.getNodeAttribute(`T:${id}`, "x"), picture.getNodeAttribute(`T:${id}`, "y"));
    expect(away("b")).toBe(0);
    expect(away("a")).toBeCloseTo(away("d"));
    expect(away("c")).toBeGreaterThan(away("a"));
  });

  it("bring back what was pushed beyond all numbers", () => {
    const { picture } = scene([["a", "b"]]);
    picture.setNodeAttribute("T:a", "x", Number.NaN);
    arrangeAs(picture, "force");
    expect(Number.isFinite(picture.getNodeAttribute("T:a", "x"))).toBe(true);
  });

  it("leave pinned nodes where they are", () => {
    const made = scene(tree);
    made.picture.mergeNodeAttributes("T:d", { x: 5, y: 6 });
    made.pin("T:d", true);
    for (const layout of LAYOUTS) {
      arrangeAs(made.picture, layout);
      expect(made.picture.getNodeAttributes("T:d")).toMatchObject({ x: 5, y: 6 });
    }
  });
});

describe("a drawing", () => {
  it("is XML whatever the names are", () => {
    const { picture } = scene([["<script>alert(1)</script>", "\u0000&\"'"]]);
    const styles = {
      node: (key: string) => ({ label: key, colour: "#123", size: 8, ring: null }),
      edge: () => ({ label: "E", colour: "#456", width: 2 }),
      scheme: () => ({ ground: "#fff", text: "#000", muted: "#777", font: "sans-serif" }),
    };
    arrangeAs(picture, "layered");
    const pen = new SvgPen(WINDOW, "sans-serif", "#fff", (text) => text.length * 6);
    drawPicture(pen, picture, styles, fitted(placesOf(picture), WINDOW.width, WINDOW.height), WINDOW);
    const text = pen.document();
    expect(text).toContain("&lt;script&gt;");
    expect(text).not.toContain("<script");
    expect(text.match(/<circle/g)).toHaveLength(2);
    expect(text).not.toContain("NaN");
    expect(xml("a\u0000b")).toBe("a�b");
  });
});

describe("words", () => {
  it("show what nobody would see", () => {
    expect(valueText("\u202egnp.exe")).toBe("⟨U+202E⟩gnp.exe");
    expect(valueText(["\u200b"])).toBe('["⟨U+200B⟩"]');
    expect(valueText("Ada 👩‍👧 line\nbreak")).toBe("Ada 👩‍👧 line\nbreak");
  });

  it("say 100 % only when all is done", () => {
    expect(share(999_999, 1_000_000)).toBe("99.9%");
    expect([share(1, 2), share(5, 5), share(0, 0)]).toEqual(["50%", "100%", "100%"]);
  });

  it("tell code from sentences", () => {
    expect(parts("Did you mean `Person`?")).toEqual(["Did you mean ", "Person", "?"]);
    expect(parts("one ` alone")).toEqual(["one ` alone"]);
  });

  it("sort rows by size, by text, and what is missing last", () => {
    const rows = [{ a: 10 }, { a: null }, { a: 9 }];
    expect(sortedBy(rows, { name: "a", down: false }).map((row) => row.a)).toEqual([9, 10, null]);
    expect(sortedBy(rows, { name: "a", down: true }).map((row) => row.a)).toEqual([10, 9, null]);
  });

  it("follow a path whichever way its edges lead", () => {
    const ref = (id: string) => ({ type: "T", id });
    const edges = [
      { type: "E", from: ref("a"), to: ref("b") },
      { type: "E", from: ref("c"), to: ref("b") },
    ];
    expect(walkedPath(ref("a"), edges).nodes.map((node) => node.id)).toEqual(["a", "b", "c"]);
  });
});
