// The pad: strokes from a mouse, a pen, a finger or the keyboard, and the server's guesses beside them.
"use strict";

const SIDE = 1000; // the drawing's own units, whatever the screen's
const LEAST_MOVE = 2; // of the pen, to be worth a point
const TOP = 5;
const ASK_EVERY = 120; // milliseconds, while a stroke is being drawn
const RETRY_AFTER = 1500;

const at = (id) => document.getElementById(id);
const canvas = at("canvas");
const paper = canvas.getContext("2d");
const tools = { undo: at("undo"), clear: at("clear"), png: at("png"), json: at("json") };

let strokes = []; // each a list of [x, y]
let history = []; // what strokes was before each change
let current = null; // the stroke that is being drawn, also the last of strokes
let pointer = null; // the finger, pen or mouse that draws it
let cursor = null; // where the keyboard's pen is

// Drawing

function begin(point) {
  history.push(strokes);
  current = [point];
  strokes = [...strokes, current];
  changed();
}

function extend(point) {
  const [x, y] = current[current.length - 1];
  if (Math.hypot(point[0] - x, point[1] - y) < LEAST_MOVE) return;
  current.push(point);
  changed();
}

function finish() {
  current = pointer = null;
  ask({ aloud: true });
}

function replace(next) {
  current = pointer = null;
  strokes = next;
  changed();
  ask({ aloud: true });
}

function undo() {
  if (history.length) replace(history.pop());
}

function clear() {
  if (!strokes.length) return;
  history.push(strokes);
  replace([]);
}

function changed() {
  at("invitation").classList.toggle("gone", strokes.length > 0);
  tools.undo.disabled = !history.length;
  for (const name of ["clear", "png", "json"]) tools[name].disabled = !strokes.length;
  repaint();
  if (current && performance.now() - asked > ASK_EVERY) ask();
}

// Painting

let painting = false;

function repaint() {
  if (painting) return;
  painting = true;
  requestAnimationFrame(() => {
    painting = false;
    const sharpness = window.devicePixelRatio || 1;
    const size = Math.round(canvas.clientWidth * sharpness);
    if (canvas.width !== size) canvas.width = canvas.height = size;
    const style = getComputedStyle(document.documentElement);
    paint(paper, size, style.getPropertyValue("--ink"));
    if (cursor && document.activeElement === canvas) paintCursor(style.getPropertyValue("--accent"));
  });
}

function paint(target, size, ink, ground = null) {
  target.setTransform(size / SIDE, 0, 0, size / SIDE, 0, 0);
  target.clearRect(0, 0, SIDE, SIDE);
  if (ground) {
    target.fillStyle = ground;
    target.fillRect(0, 0, SIDE, SIDE);
  }
  target.strokeStyle = ink;
  target.lineWidth = at("pen").valueAsNumber;
  target.lineCap = target.lineJoin = "round";
  for (const stroke of strokes) {
    target.beginPath();
    trace(target, stroke);
    target.stroke();
  }
}

// Curves that pass through the middles between points: a hand draws no corners that it did not mean.
function trace(target, stroke) {
  const [first, ...rest] = stroke;
  target.moveTo(...first);
  rest.forEach(([x, y], i) => {
    const next = rest[i + 1];
    if (next) target.quadraticCurveTo(x, y, (x + next[0]) / 2, (y + next[1]) / 2);
    else target.lineTo(x, y);
  });
  if (!rest.length) target.lineTo(...first);
}

function paintCursor(colour) {
  const [x, y] = cursor;
  paper.strokeStyle = colour;
  paper.lineWidth = 3;
  paper.beginPath();
  paper.arc(x, y, current ? 10 : 18, 0, 2 * Math.PI);
  paper.stroke();
}

// Pointers

const clamp = (value) => Math.round(Math.min(Math.max(value, 0), SIDE) * 10) / 10;

function place(event) {
  const box = canvas.getBoundingClientRect();
  const scale = SIDE / box.width;
  return [clamp((event.clientX - box.left) * scale), clamp((event.clientY - box.top) * scale)];
}

canvas.addEventListener("pointerdown", (event) => {
  if (pointer !== null || event.button !== 0) return;
  canvas.setPointerCapture(event.pointerId);
  pointer = event.pointerId;
  cursor = null;
  begin(place(event));
});

canvas.addEventListener("pointermove", (event) => {
  if (event.pointerId !== pointer) return;
  const moves = event.getCoalescedEvents?.() ?? [];
  for (const move of moves.length ? moves : [event]) extend(place(move));
});

for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
  canvas.addEventListener(end, (event) => {
    if (event.pointerId === pointer) finish();
  });
}

// Keys

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

canvas.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const arrow = ARROWS[event.key];
  if (arrow) {
    const step = event.shiftKey ? 60 : 15;
    const [x, y] = cursor ?? [SIDE / 2, SIDE / 2];
    cursor = [clamp(x + step * arrow[0]), clamp(y + step * arrow[1])];
    if (current) extend(cursor);
    repaint();
  } else if (event.key === " " || event.key === "Enter") {
    cursor ??= [SIDE / 2, SIDE / 2];
    if (current) finish();
    else begin(cursor);
    say(current ? "Pen down" : "Pen up");
    repaint();
  } else if (event.key === "Escape" && current) {
    finish();
    repaint();
  } else {
    return;
  }
  event.preventDefault();
});

canvas.addEventListener("blur", () => {
  if (current && pointer === null) finish();
  repaint();
});

const KEYS = {
  z: undo,
  c: clear,
  p: () => downloadPng(),
  j: () => downloadJson(),
  n: () => at("see").click(),
  "[": () => setPen(-2),
  "]": () => setPen(2),
};

document.addEventListener("keydown", (event) => {
  const key = event.key.toLowerCase();
  if ((event.ctrlKey || event.metaKey) && key === "z") undo();
  // Plain letters only where the focus is at the drawing: elsewhere they belong to the reader's own tools.
  else if (!event.ctrlKey && !event.metaKey && !event.altKey && KEYS[key] && inBoard()) KEYS[key]();
  else return;
  event.preventDefault();
});

const inBoard = () => at("board").contains(document.activeElement);

function setPen(change) {
  at("pen").valueAsNumber += change;
  repaint();
}

// Guesses

const rows = Array.from({ length: TOP }, () => {
  const row = document.createElement("li");
  const [label, share, bar] = ["label", "share", "bar"].map((name) => {
    const part = document.createElement("span");
    part.className = name;
    row.append(part);
    return part;
  });
  label.textContent = share.textContent = "\u00a0"; // keeps its height
  bar.setAttribute("aria-hidden", "true");
  at("guesses").append(row);
  return { row, label, share, bar };
});

let asked = 0; // when
let asking = false;
let again = null; // what to ask for when the answer is there, since the drawing has changed

async function ask(wanted = { aloud: false }) {
  if (asking) {
    again = { aloud: wanted.aloud || again?.aloud };
    return;
  }
  if (!isDrawing()) {
    show(null);
    return;
  }
  asking = true;
  asked = performance.now();
  try {
    const body = JSON.stringify({ strokes, top: TOP });
    const answer = await post("v1/recognize", body);
    const found = await answer.json();
    const roundTrip = performance.now() - asked;
    if (!answer.ok) throw Object.assign(new Error(found.error), { isBusy: answer.status === 503 });
    show(found, roundTrip);
    if (at("see").checked) await showSeen(body);
    if (wanted.aloud && !again) announce(found);
  } catch (problem) {
    excuse(problem);
    if (problem.isBusy) setTimeout(() => ask(wanted), RETRY_AFTER);
  } finally {
    asking = false;
    const next = again;
    again = null;
    if (next) ask(next);
  }
}

// A single point is no drawing yet.
function isDrawing() {
  return strokes.some((stroke) => stroke.some(([x, y]) => x !== strokes[0][0][0] || y !== strokes[0][0][1]));
}

const post = (path, body) => fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body });

function show(found, roundTrip) {
  const guesses = isDrawing() && found ? found.guesses : [];
  rows.forEach(({ row, label, share, bar }, i) => {
    const guess = guesses[i];
    label.textContent = guess ? guess.label : "\u00a0";
    share.textContent = guess ? percent(guess.probability) : "\u00a0";
    bar.style.setProperty("--share", guess ? guess.probability : 0);
    row.setAttribute("aria-hidden", guess ? "false" : "true");
  });
  at("guesses").classList.toggle("sure", guesses.length > 0 && found.sure);
  if (!guesses.length) {
    at("headline").textContent = "What will it be?";
    at("remark").textContent = idea ? `No idea? Try: ${idea}.` : "It guesses after every stroke.";
    at("time").textContent = "\u00a0";
    wipeSeen();
    return;
  }
  const [first] = guesses;
  at("headline").textContent = found.sure ? first.label : "Not sure yet";
  at("remark").textContent = found.sure
    ? `${percent(first.probability)} sure.`
    : `Perhaps ${first.label}. Draw on!`;
  at("time").textContent =
    `${found.milliseconds.total.toFixed(1)} ms to recognize, ${roundTrip.toFixed(0)} ms there and back`;
}

function announce(found) {
  const names = found.guesses.slice(0, 3).map(({ label, probability }) => `${label} ${percent(probability)}`);
  say(found.sure ? names[0] : `Not sure yet. Perhaps ${names.join(", ")}`);
}

function excuse(problem) {
  at("headline").textContent = "One moment";
  at("remark").textContent =
    problem instanceof TypeError ? "The server does not answer. Is it still running?" : `It says: ${problem.message}`;
}

function say(words) {
  at("spoken").textContent = words;
}

function percent(share) {
  if (share < 0.001) return "< 0.1 %";
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

// What the network sees

async function showSeen(body) {
  const answer = await post("v1/raster", body);
  if (!answer.ok) return;
  const image = await createImageBitmap(await answer.blob());
  const seen = at("seen");
  seen.width = image.width;
  seen.height = image.height;
  seen.getContext("2d").drawImage(image, 0, 0);
}

function wipeSeen() {
  const seen = at("seen");
  seen.getContext("2d").clearRect(0, 0, seen.width, seen.height);
}

at("see").addEventListener("change", () => {
  at("seen").hidden = !at("see").checked;
  ask();
});

// Downloads

function downloadPng() {
  if (!strokes.length) return;
  const sheet = document.createElement("canvas");
  sheet.width = sheet.height = SIDE;
  paint(sheet.getContext("2d"), SIDE, "black", "white");
  sheet.toBlob((blob) => download(blob, "drawing.png"), "image/png");
}

function downloadJson() {
  if (strokes.length) download(new Blob([JSON.stringify({ strokes })], { type: "application/json" }), "drawing.json");
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// The rest

let idea = null;

async function introduce() {
  const model = await (await fetch("v1/model")).json();
  idea = model.labels[Math.floor(Math.random() * model.labels.length)];
  if (!isDrawing()) show(null);
  const [knows, megabytes] = [at("knows"), (model.bytes / 1e6).toFixed(1)];
  knows.querySelector("summary").textContent = `It knows ${model.labels.length} things, in ${megabytes} MB`;
  knows.querySelector("ul").append(
    ...model.labels.map((label) => Object.assign(document.createElement("li"), { textContent: label })),
  );
  knows.hidden = false;
}

tools.undo.addEventListener("click", undo);
tools.clear.addEventListener("click", clear);
tools.png.addEventListener("click", downloadPng);
tools.json.addEventListener("click", downloadJson);
at("pen").addEventListener("input", repaint);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
new ResizeObserver(repaint).observe(canvas);
show(null);
introduce().catch(excuse);
