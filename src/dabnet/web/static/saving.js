// Downloads of a drawing.
import { SIDE } from "./drawing.js";
import { paintStrokes } from "./paper.js";

export function savePng(drawing, pen) {
  if (drawing.strokes.length) toPng(drawing.strokes, pen).then((blob) => download(blob, "drawing.png"));
}

export function saveJson({ strokes }) {
  if (strokes.length) download(new Blob([JSON.stringify({ strokes })], { type: "application/json" }), "drawing.json");
}

function toPng(strokes, pen) {
  const sheet = document.createElement("canvas");
  sheet.width = sheet.height = SIDE;
  paintStrokes(sheet.getContext("2d"), SIDE, strokes, { ink: "black", pen, ground: "white" });
  return new Promise((resolve) => sheet.toBlob(resolve, "image/png"));
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
