// What draws: a mouse, a pen, a finger or the keyboard.
import { SIDE } from "./drawing.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEP = 15;
const LONG_STEP = 60;

const clamp = (value) => Math.round(Math.min(Math.max(value, 0), SIDE) * 10) / 10;

// Lets pointers draw on the canvas.
export function drawByPointer(canvas, drawing) {
  let pointer = null; // the one that draws

  const pointOf = (event) => {
    const box = canvas.getBoundingClientRect();
    const scale = SIDE / box.width;
    return [clamp((event.clientX - box.left) * scale), clamp((event.clientY - box.top) * scale)];
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (pointer !== null || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointer = event.pointerId;
    drawing.begin(pointOf(event));
  });

  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerId !== pointer || !drawing.stroke) return;
    const moves = event.getCoalescedEvents?.() ?? [];
    for (const move of moves.length ? moves : [event]) drawing.extend(pointOf(move));
  });

  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
    canvas.addEventListener(end, (event) => {
      if (event.pointerId !== pointer) return;
      pointer = null;
      if (drawing.stroke) drawing.finish();
    });
  }
}

// Lets the keyboard draw on the canvas; returns a function that tells where its pen is, or null.
export function drawByKeyboard(canvas, drawing, say, repaint) {
  let cursor = null;
  let isDown = false; // it was the keyboard that began the stroke

  const lift = () => {
    if (isDown && drawing.stroke) drawing.finish();
    isDown = false;
  };

  const handle = (event) => {
    const arrow = ARROWS[event.key];
    if (arrow) {
      const step = event.shiftKey ? LONG_STEP : STEP;
      const [x, y] = cursor ?? [SIDE / 2, SIDE / 2];
      cursor = [clamp(x + step * arrow[0]), clamp(y + step * arrow[1])];
      if (isDown && drawing.stroke) drawing.extend(cursor);
    } else if (event.key === " " || event.key === "Enter") {
      cursor ??= [SIDE / 2, SIDE / 2];
      if (isDown) lift();
      else if (!drawing.stroke) {
        isDown = true;
        drawing.begin(cursor);
      }
      say(isDown ? "Pen down" : "Pen up");
    } else if (event.key === "Escape" && isDown) {
      lift();
    } else {
      return;
    }
    event.preventDefault();
    repaint();
  };

  canvas.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) handle(event);
  });
  canvas.addEventListener("pointerdown", () => {
    cursor = null;
    isDown = false;
  });
  canvas.addEventListener("blur", () => {
    lift();
    repaint();
  });
  drawing.watch(() => (isDown &&= drawing.stroke !== null));
  return () => (document.activeElement === canvas ? cursor : null);
}
