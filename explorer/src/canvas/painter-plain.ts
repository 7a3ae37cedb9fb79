import { CanvasPen, drawPicture, fitted, placesOf, type View } from "./draw";
import type { Picture } from "./model";
import type { Hands, Painter, Styles } from "./painter";

const CLICK_PIXELS = 4;

/** Draws on a plain canvas, for browsers without WebGL. */
export class PlainPainter implements Painter {
  private readonly canvas = document.createElement("canvas");
  private readonly observer = new ResizeObserver(() => this.refresh());
  private view: View = { scale: 1, x: 0, y: 0 };
  private fitted = false;
  private wanted: readonly string[] | undefined; // what to fit; all
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

  fit(keys?: readonly string[]): void {
    this.wanted = keys;
    this.fitted = false;
    this.refresh();
  }

  centre(key: string): void {
    const { x, y } = this.picture.getNodeAttributes(key);
    const { scale } = this.view;
    this.view = { scale, x: this.box.clientWidth / 2 - x * scale, y: this.box.clientHeight / 2 + y * scale };
    this.refresh();
  }

  zoom(factor: number, at = { x: this.box.clientWidth / 2, y: this.box.clientHeight / 2 }): void {
    const { scale, x, y } = this.view;
    this.view = { scale: scale * factor, x: at.x + (x - at.x) * factor, y: at.y + (y - at.y) * factor };
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

  private draw(): void {
    const { clientWidth: width, clientHeight: height } = this.box;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    if (!this.fitted) this.view = fitted(placesOf(this.picture, this.wanted), width, height);
    this.fitted = true;
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.scale(ratio, ratio);
    const pen = new CanvasPen(context, this.styles.scheme().font);
    drawPicture(pen, this.picture, this.styles, this.view, { width, height });
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
