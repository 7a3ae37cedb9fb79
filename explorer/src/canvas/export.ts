/** The picture as a file. */
import { CanvasPen, drawPicture, fitted, placesOf, SvgPen } from "./draw";
import type { Picture } from "./model";
import type { Styles } from "./painter";

const SHARPNESS = 2; // pixels of a PNG for one on the screen

interface Size {
  readonly width: number;
  readonly height: number;
}

export function asSvg(picture: Picture, styles: Styles, size: Size): Blob {
  const { font, ground } = styles.scheme();
  const ruler = new CanvasPen(document.createElement("canvas").getContext("2d")!, font);
  const pen = new SvgPen(size, font, ground, (text, pixels, bold) => ruler.measure(text, pixels, bold));
  drawPicture(pen, picture, styles, fitted(placesOf(picture), size.width, size.height), size);
  return new Blob([pen.document()], { type: "image/svg+xml" });
}

export function asPng(picture: Picture, styles: Styles, size: Size): Promise<Blob> {
  const { font, ground } = styles.scheme();
  const canvas = document.createElement("canvas");
  canvas.width = size.width * SHARPNESS;
  canvas.height = size.height * SHARPNESS;
  const context = canvas.getContext("2d")!;
  context.scale(SHARPNESS, SHARPNESS);
  context.fillStyle = ground;
  context.fillRect(0, 0, size.width, size.height);
  const view = fitted(placesOf(picture), size.width, size.height);
  drawPicture(new CanvasPen(context, font), picture, styles, view, size);
  return new Promise((resolve, reject) =>
    canvas.toBlob((made) => (made ? resolve(made) : reject(new Error("the picture cannot be made")))),
  );
}
