// Strokes from a stranger's file or link, checked before they are used; fitted to the paper; with fewer points.
import { SIDE } from "./drawing.js";

const MAX_STROKES = 2000;
const MAX_POINTS = 30_000;
const MARGIN = 0.12; // of the paper, around a drawing that is fitted to it

// Thrown where text or a file holds no drawing; the message is a whole sentence.
export class UnreadableError extends Error {}

// Returns strokes as they are, if they are lists of points within bounds, and not too many.
export function checkStrokes(strokes, { least = 0, most = SIDE } = {}) {
  const isNumber = (value) => typeof value === "number" && value >= least && value <= most;
  const isPoint = (point) => Array.isArray(point) && point.length === 2 && point.every(isNumber);
  const isStroke = (stroke) => Array.isArray(stroke) && stroke.length > 0 && stroke.every(isPoint);
  const isDrawing = Array.isArray(strokes) && strokes.length <= MAX_STROKES && strokes.every(isStroke);
  if (!isDrawing || strokes.reduce((sum, { length }) => sum + length, 0) > MAX_POINTS) {
    throw new UnreadableError("There are no strokes in it that can be drawn.");
  }
  return strokes;
}

// Reads the JSON file of a drawing, at any scale.
export function strokesFromJson(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new UnreadableError("It is not JSON.");
  }
  const strokes = checkStrokes(found?.strokes ?? found, { least: -1e6, most: 1e6 });
  if (!strokes.length) throw new UnreadableError("There are no strokes in it.");
  return isOnPaper(strokes) ? strokes : fitToPaper(strokes);
}

function isOnPaper(strokes) {
  const [[left, right], [top, bottom]] = bounds(strokes);
  return left >= 0 && top >= 0 && right <= SIDE && bottom <= SIDE && Math.max(right - left, bottom - top) > SIDE / 4;
}

function fitToPaper(strokes) {
  const [[left, right], [top, bottom]] = bounds(strokes);
  const scale = ((1 - 2 * MARGIN) * SIDE) / (Math.max(right - left, bottom - top) || 1);
  const move = (value, low, high) => Math.round(((value - (low + high) / 2) * scale + SIDE / 2) * 10) / 10;
  return strokes.map((stroke) => stroke.map(([x, y]) => [move(x, left, right), move(y, top, bottom)]));
}

function bounds(strokes) {
  const range = (values) =>
    values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  return [0, 1].map((axis) => range(strokes.flat().map((point) => point[axis])));
}

// Ramer, Douglas and Peucker: leaves out the points that lie close to the line between those that stay.
export function simplify(stroke, tolerance) {
  const kept = new Set([0, stroke.length - 1]);
  const spans = [[0, stroke.length - 1]];
  while (spans.length) {
    const [from, to] = spans.pop();
    let [farthest, most] = [0, tolerance];
    for (let i = from + 1; i < to; i += 1) {
      const distance = distanceToLine(stroke[i], stroke[from], stroke[to]);
      if (distance > most) [farthest, most] = [i, distance];
    }
    if (!farthest) continue;
    kept.add(farthest);
    spans.push([from, farthest], [farthest, to]);
  }
  return stroke.filter((_, i) => kept.has(i));
}

function distanceToLine([x, y], [x1, y1], [x2, y2]) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const along = Math.min(Math.max(((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1), 0), 1);
  return Math.hypot(x - x1 - along * dx, y - y1 - along * dy);
}
