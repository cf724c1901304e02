// What the browser keeps between visits, where it lets us: the drawing, the pen's width, the best score.
import { checkStrokes } from "./strokes.js";

const DRAWING = "dabnet.drawing";
const BEST = "dabnet.best";

// Returns { strokes, pen } of the last visit; no strokes if there is nothing, or nothing that can be read.
export function recall() {
  try {
    const { strokes, pen } = JSON.parse(localStorage.getItem(DRAWING));
    return { strokes: checkStrokes(strokes), pen };
  } catch {
    return { strokes: [], pen: null };
  }
}

export function keep(strokes, pen) {
  put(DRAWING, JSON.stringify({ strokes, pen }));
}

export function bestScore() {
  try {
    return Number(localStorage.getItem(BEST)) || 0;
  } catch {
    return 0;
  }
}

export function keepBestScore(score) {
  put(BEST, String(score));
}

function put(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // no storage, or no room: a reload then begins with empty paper
  }
}
