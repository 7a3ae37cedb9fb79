import Sigma from "sigma";
import type { CameraState, NodeDisplayData, PartialButFor } from "sigma/types";
import { CanvasPen, drawLabels } from "./draw";
import type { EdgeAttributes, NodeAttributes, Picture } from "./model";
import type { Hands, Painter, Styles } from "./painter";

type Drawn = PartialButFor<NodeDisplayData, "x" | "y" | "size" | "label" | "color"> & {
  ring?: string | null;
  key?: string;
};
const NEAREST = 0.15; // of the whole, however few nodes are to be shown
const MOVE_MILLISECONDS = 200;
const WHOLE: CameraState = { x: 0.5, y: 0.5, ratio: 1, angle: 0 };

/** Draws with sigma. */
export class WebGLPainter implements Painter {
  private readonly sigma: Sigma<NodeAttributes, EdgeAttributes>;
  private pen: CanvasPen | undefined;
  private named: ReadonlySet<string> = new Set(); // the nodes whose labels found room
  private goal: Partial<CameraState> = {}; // where the camera is moving to
  private pointed: string | null = null; // the node under the mouse

  constructor(
    private readonly picture: Picture,
    box: HTMLElement,
    private readonly styles: Styles,
    private readonly hands: Hands,
  ) {
    this.sigma = new Sigma<NodeAttributes, EdgeAttributes>(picture, box, {
      allowInvalidContainer: true,
      renderLabels: false, // they are placed by us, so that none is on top of another
      renderEdgeLabels: false,
      defaultEdgeType: "arrow",
      stagePadding: 64, // where the legend and the tools are
      zoomToSizeRatioFunction: (ratio) => Math.max(1, Math.sqrt(ratio)), // nearer is not larger: there is more room
      minCameraRatio: 0.05,
      maxCameraRatio: 6,
      zIndex: true,
      nodeReducer: (key) => this.node(key),
      edgeReducer: (key) => this.edge(key),
      defaultDrawNodeHover: (context, data) => this.hover(context, data),
    });
    this.sigma.on("afterRender", () => this.labels());
    this.listen();
  }

  refresh(): void {
    this.sigma.refresh();
  }

  fit(keys?: readonly string[]): void {
    const spots = (keys ?? []).flatMap((key) => this.sigma.getNodeDisplayData(key) ?? []);
    if (spots.length === 0) return this.move(WHOLE);
    const middle = (values: number[]) => (Math.min(...values) + Math.max(...values)) / 2;
    const span = (values: number[]) => Math.max(...values) - Math.min(...values);
    const [xs, ys] = [spots.map(({ x }) => x), spots.map(({ y }) => y)];
    const ratio = Math.min(1, Math.max(NEAREST, Math.max(span(xs), span(ys)) * 1.4));
    this.move({ x: middle(xs), y: middle(ys), ratio });
  }

  centre(key: string): void {
    const data = this.sigma.getNodeDisplayData(key);
    if (data) this.move({ x: data.x, y: data.y });
  }

  zoom(factor: number): void {
    const camera = this.sigma.getCamera();
    camera.setState({ ratio: camera.ratio / factor });
  }

  /** There, at once for those who want no motion. A move that is overtaken by another still counts. */
  private move(to: Partial<CameraState>): void {
    const camera = this.sigma.getCamera();
    const goal = { ...(camera.isAnimated() ? this.goal : {}), ...to };
    this.goal = goal;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) camera.setState(goal);
    else void camera.animate(goal, { duration: MOVE_MILLISECONDS });
  }

  destroy(): void {
    this.sigma.kill();
  }

  private node(key: string): Partial<NodeDisplayData> {
    const style = this.styles.node(key);
    const { x, y } = this.picture.getNodeAttributes(key);
    return {
      x,
      y,
      label: style.label,
      color: style.colour,
      size: style.size,
      highlighted: style.ring !== null,
      zIndex: style.ring ? 1 : 0,
      key,
      ring: style.ring,
    } as Partial<NodeDisplayData>;
  }

  private edge(key: string) {
    const style = this.styles.edge(key);
    return { label: style.label, color: style.colour, size: style.width };
  }

  private labels(): void {
    const context = this.sigma.getCanvases()["labels"]?.getContext("2d");
    if (!context) return;
    this.pen ??= new CanvasPen(context, this.styles.scheme().font);
    const place = (key: string) => this.sigma.graphToViewport(this.picture.getNodeAttributes(key));
    this.named = drawLabels(this.pen, this.picture, this.styles, place, this.sigma.getDimensions());
  }

  private hover(context: CanvasRenderingContext2D, data: Drawn): void {
    context.beginPath();
    context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
    context.lineWidth = 2.5;
    context.strokeStyle = data.ring ?? this.styles.scheme().muted;
    context.stroke();
    const key = data.key as string;
    if (!data.label || key !== this.pointed || this.named.has(key)) return; // the chosen one always has its label
    const { font, text, ground } = this.styles.scheme();
    const at = { x: data.x + data.size + 4, y: data.y + 4 };
    new CanvasPen(context, font).text(data.label, at, 12, true, text, ground);
  }

  private listen(): void {
    let held: string | null = null;
    let moved = false;
    const { sigma, hands } = this;
    sigma.on("enterNode", ({ node }) => (this.pointed = node));
    sigma.on("leaveNode", () => (this.pointed = null));
    sigma.on("clickNode", ({ node }) => hands.select(node));
    sigma.on("clickStage", () => hands.select(null));
    sigma.on("doubleClickNode", ({ node, preventSigmaDefault }) => {
      preventSigmaDefault();
      hands.open(node);
    });
    sigma.on("downNode", ({ node }) => {
      held = node;
      moved = false;
      if (!sigma.getCustomBBox()) sigma.setCustomBBox(sigma.getBBox());
    });
    sigma.on("moveBody", ({ event }) => {
      if (held === null) return;
      moved = true;
      this.picture.mergeNodeAttributes(held, sigma.viewportToGraph(event));
      event.preventSigmaDefault();
      event.original.preventDefault();
      event.original.stopPropagation();
    });
    const release = () => {
      if (held !== null && moved) hands.moved(held);
      if (held !== null) sigma.setCustomBBox(null);
      held = null;
    };
    sigma.on("upNode", release);
    sigma.on("upStage", release);
  }
}
