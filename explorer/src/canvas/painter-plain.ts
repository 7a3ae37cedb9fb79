import type { Picture } from "./model";
import type { Hands, Painter, Styles } from "./painter";

const PADDING = 48;
const CLICK_PIXELS = 4;
const FEW_NODES = 120; // more have no room for all their labels
const HUB_EDGES = 6;

/** Draws on a plain canvas, for browsers without WebGL. */
export class PlainPainter implements Painter {
  private readonly canvas = document.createElement("canvas");
  private readonly observer = new ResizeObserver(() => this.refresh());
  private view = { scale: 1, x: 0, y: 0 };
  private fitted = false;
  private frame = 0;

  constructor(
    private readonly picture: Picture,
    private readonly box: HTMLElement,
    private readonly styles: Styles,
    private readonly hands: Hands,
  ) {
    this.canvas.className = "plain-canvas";
    box.append(this.canvas);
    this.observer.observe(box);
    this.listen();
  }

  refresh(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  fit(): void {
    this.fitted = false;
    this.refresh();
  }

  centre(key: string): void {
    const { x, y } = this.picture.getNodeAttributes(key);
    this.view.x = this.box.clientWidth / 2 - x * this.view.scale;
    this.view.y = this.box.clientHeight / 2 + y * this.view.scale;
    this.refresh();
  }

  zoom(factor: number, at = { x: this.box.clientWidth / 2, y: this.box.clientHeight / 2 }): void {
    this.view.x = at.x + (this.view.x - at.x) * factor;
    this.view.y = at.y + (this.view.y - at.y) * factor;
    this.view.scale *= factor;
    this.refresh();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
    this.canvas.remove();
  }

  private place(key: string): { x: number; y: number } {
    const { x, y } = this.picture.getNodeAttributes(key);
    return { x: this.view.x + x * this.view.scale, y: this.view.y - y * this.view.scale };
  }

  private fitView(): void {
    const places = this.picture.mapNodes((_, { x, y }) => ({ x, y }));
    if (places.length === 0) return;
    const [left, right] = [Math.min(...places.map((p) => p.x)), Math.max(...places.map((p) => p.x))];
    const [low, high] = [Math.min(...places.map((p) => p.y)), Math.max(...places.map((p) => p.y))];
    const { clientWidth: width, clientHeight: height } = this.box;
    const scale = Math.min((width - 2 * PADDING) / (right - left || 1), (height - 2 * PADDING) / (high - low || 1));
    this.view = { scale, x: width / 2 - (scale * (left + right)) / 2, y: height / 2 + (scale * (low + high)) / 2 };
    this.fitted = true;
  }

  private draw(): void {
    const { clientWidth: width, clientHeight: height } = this.box;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    if (!this.fitted) this.fitView();
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.scale(ratio, ratio);
    this.picture.forEachEdge((key, _, from, to) => this.drawEdge(context, key, from, to));
    this.picture.forEachNode((key) => this.drawNode(context, key));
    this.picture.forEachNode((key) => this.drawLabel(context, key));
  }

  private drawEdge(context: CanvasRenderingContext2D, key: string, from: string, to: string): void {
    const style = this.styles.edge(key);
    const [a, b] = [this.place(from), this.place(to)];
    const angle = Math.atan2(b.y - a.y, b.x - a.x);
    const radius = this.styles.node(to).size + 1;
    const tip = { x: b.x - radius * Math.cos(angle), y: b.y - radius * Math.sin(angle) };
    context.strokeStyle = context.fillStyle = style.colour;
    context.lineWidth = style.width;
    context.beginPath();
    context.moveTo(a.x, a.y);
    context.lineTo(tip.x, tip.y);
    context.stroke();
    context.beginPath();
    context.moveTo(tip.x, tip.y);
    for (const side of [0.4, -0.4])
      context.lineTo(tip.x - 8 * Math.cos(angle + side), tip.y - 8 * Math.sin(angle + side));
    context.fill();
    if (style.label && Math.hypot(b.x - a.x, b.y - a.y) > 90)
      this.edgeLabel(context, style.label, (a.x + b.x) / 2, (a.y + b.y) / 2);
  }

  private edgeLabel(context: CanvasRenderingContext2D, text: string, x: number, y: number): void {
    const scheme = this.styles.scheme();
    context.font = `11px ${scheme.font}`;
    context.textAlign = "center";
    context.lineWidth = 3;
    context.strokeStyle = scheme.ground;
    context.fillStyle = scheme.muted;
    context.strokeText(text, x, y - 3);
    context.fillText(text, x, y - 3);
    context.textAlign = "left";
  }

  private drawNode(context: CanvasRenderingContext2D, key: string): void {
    const style = this.styles.node(key);
    const { x, y } = this.place(key);
    context.fillStyle = style.colour;
    context.beginPath();
    context.arc(x, y, style.size, 0, 2 * Math.PI);
    context.fill();
    if (!style.ring) return;
    context.strokeStyle = style.ring;
    context.lineWidth = 2.5;
    context.beginPath();
    context.arc(x, y, style.size + 3, 0, 2 * Math.PI);
    context.stroke();
  }

  private drawLabel(context: CanvasRenderingContext2D, key: string): void {
    const style = this.styles.node(key);
    if (this.picture.order > FEW_NODES && this.picture.degree(key) < HUB_EDGES && !style.ring) return;
    const scheme = this.styles.scheme();
    const { x, y } = this.place(key);
    context.font = `500 12px ${scheme.font}`;
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeStyle = scheme.ground;
    context.fillStyle = scheme.text;
    context.strokeText(style.label, x + style.size + 4, y + 4);
    context.fillText(style.label, x + style.size + 4, y + 4);
  }

  private nodeAt(x: number, y: number): string | null {
    let found: string | null = null;
    this.picture.forEachNode((key) => {
      const at = this.place(key);
      if (Math.hypot(at.x - x, at.y - y) <= this.styles.node(key).size + 3) found = key;
    });
    return found;
  }

  private listen(): void {
    let held: string | null = null;
    let start: { x: number; y: number } | null = null;
    let last = { x: 0, y: 0 };
    this.canvas.addEventListener("pointerdown", (event) => {
      start = last = { x: event.offsetX, y: event.offsetY };
      held = this.nodeAt(event.offsetX, event.offsetY);
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!start) return;
      const step = { x: event.offsetX - last.x, y: event.offsetY - last.y };
      last = { x: event.offsetX, y: event.offsetY };
      if (held === null) this.view = { ...this.view, x: this.view.x + step.x, y: this.view.y + step.y };
      else this.move(held, step);
      this.refresh();
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const moved = start && Math.hypot(event.offsetX - start.x, event.offsetY - start.y) > CLICK_PIXELS;
      if (start && !moved) this.hands.select(held);
      else if (held !== null) this.hands.moved(held);
      start = held = null;
    });
    this.canvas.addEventListener("dblclick", (event) => {
      const key = this.nodeAt(event.offsetX, event.offsetY);
      if (key !== null) this.hands.open(key);
    });
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, { x: event.offsetX, y: event.offsetY });
      },
      { passive: false },
    );
  }

  private move(key: string, step: { x: number; y: number }): void {
    const { x, y } = this.picture.getNodeAttributes(key);
    this.picture.mergeNodeAttributes(key, { x: x + step.x / this.view.scale, y: y - step.y / this.view.scale });
  }
}
