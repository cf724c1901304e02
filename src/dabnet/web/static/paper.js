// Paints drawings: on the paper, in small, and for a file.
import { SIDE } from "./drawing.js";

// Paints strokes into a square of so many pixels; `pen` is in the drawing's units.
export function paintStrokes(target, size, strokes, { ink, pen, ground = null }) {
  target.setTransform(size / SIDE, 0, 0, size / SIDE, 0, 0);
  target.clearRect(0, 0, SIDE, SIDE);
  if (ground) {
    target.fillStyle = ground;
    target.fillRect(0, 0, SIDE, SIDE);
  }
  target.strokeStyle = target.fillStyle = ink;
  target.lineWidth = pen;
  target.lineCap = target.lineJoin = "round";
  for (const stroke of strokes) {
    target.beginPath();
    if (isDot(stroke)) {
      target.arc(...stroke[0], pen / 2, 0, 2 * Math.PI); // a line of no length would paint nothing
      target.fill();
    } else {
      trace(target, stroke);
      target.stroke();
    }
  }
}

const isDot = ([first, ...rest]) => rest.every(([x, y]) => x === first[0] && y === first[1]);

// Curves that pass through the middles between points: a hand draws no corners that it did not mean.
function trace(target, [first, ...rest]) {
  target.moveTo(...first);
  rest.forEach(([x, y], i) => {
    const next = rest[i + 1];
    if (next) target.quadraticCurveTo(x, y, (x + next[0]) / 2, (y + next[1]) / 2);
    else target.lineTo(x, y);
  });
}

// A small picture of strokes, as an element; black, which the style sheet turns where it is dark.
export function thumbnail(strokes, pixels) {
  const canvas = document.createElement("canvas");
  canvas.className = "thumbnail";
  canvas.width = canvas.height = pixels;
  paintStrokes(canvas.getContext("2d"), pixels, strokes, { ink: "black", pen: 24 });
  return canvas;
}

const darkness = matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

export class Paper {
  #isWaiting = false;

  // `cursor()` is where the keyboard's pen is, or null.
  constructor(canvas, drawing, pen, cursor) {
    Object.assign(this, { canvas, drawing, pen, cursor });
    const repaint = () => this.repaint();
    darkness.addEventListener("change", repaint);
    new ResizeObserver(repaint).observe(canvas);
    pen.addEventListener("input", repaint);
    drawing.watch(repaint);
  }

  repaint() {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    requestAnimationFrame(() => {
      this.#isWaiting = false;
      this.#paint();
    });
  }

  #paint() {
    const { canvas, drawing } = this;
    const target = canvas.getContext("2d");
    const size = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1));
    if (canvas.width !== size) canvas.width = canvas.height = size;
    paintStrokes(target, size, drawing.strokes, { ink: colour("--ink"), pen: this.pen.valueAsNumber });
    if (drawing.picture) paintPicture(target, drawing.picture.bitmap);
    const cursor = this.cursor();
    if (!cursor) return;
    target.strokeStyle = colour("--accent");
    target.lineWidth = 3;
    target.beginPath();
    target.arc(...cursor, drawing.stroke ? 10 : 18, 0, 2 * Math.PI);
    target.stroke();
  }
}

function paintPicture(target, bitmap) {
  const scale = SIDE / Math.max(bitmap.width, bitmap.height);
  const [width, height] = [bitmap.width * scale, bitmap.height * scale];
  target.drawImage(bitmap, (SIDE - width) / 2, (SIDE - height) / 2, width, height);
}
