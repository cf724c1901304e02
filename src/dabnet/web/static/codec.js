// A drawing as text that fits into a link.
//
// A version, then base64url of numbers of seven bits to a byte, the lowest first: the pen's width, and for each stroke how
// many points it has and each point's way from the one before (x, y; zigzag, so that small steps are short).
import { UnreadableError, checkStrokes, simplify } from "./strokes.js";

const VERSION = "1";
const MAX_TEXT = 8000; // characters
const MAX_BYTES = Math.floor(((MAX_TEXT - 1) * 3) / 4);
const TOLERANCES = [1, 2, 4, 8, 16]; // how far a line may move, in the drawing's units, to save points

// Returns the text, or null if the drawing is too large for a link.
export function encode(strokes, pen) {
  for (const tolerance of TOLERANCES) {
    const bytes = toBytes(strokes, pen, tolerance);
    if (bytes.length <= MAX_BYTES) return VERSION + toBase64(bytes);
  }
  return null;
}

// Returns { strokes, pen } of a text from anywhere.
export function decode(text) {
  if (text.length > MAX_TEXT || !/^1[\w-]+$/.test(text)) throw unreadable();
  const [pen, ...numbers] = fromBytes(fromBase64(text.slice(VERSION.length)));
  const strokes = [];
  let [i, x, y] = [0, 0, 0];
  while (i < numbers.length) {
    const count = numbers[i];
    const end = i + 1 + 2 * count;
    if (!count || end > numbers.length) throw unreadable();
    const stroke = [];
    for (i += 1; i < end; i += 2) {
      x += unfold(numbers[i]);
      y += unfold(numbers[i + 1]);
      stroke.push([x, y]);
    }
    strokes.push(stroke);
  }
  return { strokes: checkStrokes(strokes), pen };
}

const unreadable = () => new UnreadableError("There is no drawing in it that can be read.");
const fold = (value) => (value < 0 ? -2 * value - 1 : 2 * value);
const unfold = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);

function toBytes(strokes, pen, tolerance) {
  const bytes = [];
  const put = (value) => {
    for (; value > 127; value >>= 7) bytes.push((value & 127) | 128);
    bytes.push(value);
  };
  let [x, y] = [0, 0];
  put(pen);
  for (const stroke of strokes) {
    const points = simplify(stroke, tolerance);
    put(points.length);
    for (const [nextX, nextY] of points.map((point) => point.map(Math.round))) {
      put(fold(nextX - x));
      put(fold(nextY - y));
      [x, y] = [nextX, nextY];
    }
  }
  return bytes;
}

function fromBytes(bytes) {
  const numbers = [];
  let [value, shift] = [0, 0];
  for (const byte of bytes) {
    if (shift > 14) throw unreadable(); // no number of a drawing takes more than three bytes
    value |= (byte & 127) << shift;
    shift += 7;
    if (byte & 128) continue;
    numbers.push(value);
    [value, shift] = [0, 0];
  }
  if (shift) throw unreadable();
  return numbers;
}

function toBase64(bytes) {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64(text) {
  try {
    return Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  } catch {
    throw unreadable();
  }
}
