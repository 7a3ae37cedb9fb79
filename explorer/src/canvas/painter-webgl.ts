import Sigma from "sigma";
import type { NodeDisplayData, PartialButFor } from "sigma/types";
import type { EdgeAttributes, NodeAttributes, Picture } from "./model";
import type { Hands, Painter, Styles } from "./painter";

type Drawn = PartialButFor<NodeDisplayData, "x" | "y" | "size" | "label" | "color"> & { ring?: string | null };

/** Draws with sigma. */
export class WebGLPainter implements Painter {
  private readonly sigma: Sigma<NodeAttributes, EdgeAttributes>;

  constructor(
    private readonly picture: Picture,
    box: HTMLElement,
    private readonly styles: Styles,
    private readonly hands: Hands,
  ) {
    this.sigma = new Sigma<NodeAttributes, EdgeAttributes>(picture, box, {
      allowInvalidContainer: true,
      renderEdgeLabels: true,
      defaultEdgeType: "arrow",
      labelFont: styles.scheme().font,
      labelSize: 12,
      edgeLabelFont: styles.scheme().font,
      edgeLabelSize: 11,
      labelDensity: 0.9,
      labelGridCellSize: 90,
      labelRenderedSizeThreshold: 5,
      stagePadding: 48,
      minCameraRatio: 0.05,
      maxCameraRatio: 6,
      zIndex: true,
      nodeReducer: (key) => this.node(key),
      edgeReducer: (key) => this.edge(key),
      defaultDrawNodeLabel: (context, data) => this.label(context, data),
      defaultDrawNodeHover: (context, data) => this.hover(context, data),
    });
    this.listen();
  }

  refresh(): void {
    this.sigma.setSetting("edgeLabelColor", { color: this.styles.scheme().muted });
    this.sigma.refresh();
  }

  fit(): void {
    void this.sigma.getCamera().animatedReset({ duration: 200 });
  }

  centre(key: string): void {
    const data = this.sigma.getNodeDisplayData(key);
    if (data) void this.sigma.getCamera().animate({ x: data.x, y: data.y }, { duration: 200 });
  }

  zoom(factor: number): void {
    const camera = this.sigma.getCamera();
    camera.setState({ ratio: camera.ratio / factor });
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
      forceLabel: style.ring !== null,
      highlighted: style.ring !== null,
      zIndex: style.ring ? 1 : 0,
      ring: style.ring,
    } as Partial<NodeDisplayData>;
  }

  private edge(key: string) {
    const style = this.styles.edge(key);
    return { label: style.label, color: style.colour, size: style.width };
  }

  private label(context: CanvasRenderingContext2D, data: Drawn): void {
    if (!data.label) return;
    const scheme = this.styles.scheme();
    context.font = `500 12px ${scheme.font}`;
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = scheme.ground;
    context.fillStyle = scheme.text;
    const [x, y] = [data.x + data.size + 4, data.y + 4];
    context.strokeText(data.label, x, y);
    context.fillText(data.label, x, y);
  }

  private hover(context: CanvasRenderingContext2D, data: Drawn): void {
    context.beginPath();
    context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
    context.lineWidth = 2.5;
    context.strokeStyle = data.ring ?? this.styles.scheme().muted;
    context.stroke();
    this.label(context, data);
  }

  private listen(): void {
    let held: string | null = null;
    let moved = false;
    const { sigma, hands } = this;
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
