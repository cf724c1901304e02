// The pad: puts the drawing, the paper, the guesses and the tools together.
import { AnswerView, notify, say, showSeen } from "./answer.js";
import { Asking } from "./asking.js";
import { Drawing } from "./drawing.js";
import { offerExamples } from "./examples.js";
import { Game } from "./game.js";
import { findGuesser } from "./guesser.js";
import { Paper } from "./paper.js";
import { drawByKeyboard, drawByPointer } from "./pens.js";
import { takeFiles } from "./picture.js";
import { saveJson, savePng } from "./saving.js";
import { prepareSharing, showLink, takeShared } from "./share.js";
import { keep, recall } from "./storage.js";
import { drawable, pick } from "./things.js";

const at = (id) => document.getElementById(id);
const [canvas, pen] = [at("canvas"), at("pen")];

const drawing = new Drawing();
const view = new AnswerView();
let paper = null;
let asking = null; // once there is a guesser
let game = null;

const cursor = drawByKeyboard(canvas, drawing, say, () => paper.repaint());
drawByPointer(canvas, drawing);
paper = new Paper(canvas, drawing, pen, cursor);

// What follows a change

drawing.watch(({ isMoving }) => {
  at("invitation").classList.toggle("gone", !drawing.isEmpty);
  at("undo").disabled = !drawing.canUndo;
  at("redo").disabled = !drawing.canRedo;
  at("clear").disabled = drawing.isEmpty;
  for (const name of ["share", "png", "json"]) at(name).disabled = !drawing.strokes.length;
  if (isMoving) notify("");
  else keepDrawing();
  at("guesses").ariaBusy = "true";
  asking?.ask({ isMoving });
});

function keepDrawing() {
  if (!game?.isPlaying) keep(drawing.strokes, pen.valueAsNumber);
}

function answered(answer) {
  at("guesses").ariaBusy = String(asking.isBusy);
  if (game.isPlaying) view.showTask(answer, game.thing);
  else view.show(answer, { isPicture: drawing.picture !== null });
  if (answer) game.hear(answer);
  see();
}

function failed(problem) {
  at("guesses").ariaBusy = "false";
  view.fail(problem);
}

let isSeeing = false;

async function see() {
  at("seen").hidden = !(at("see").checked || drawing.picture);
  if (at("seen").hidden || isSeeing || !asking) return;
  isSeeing = true;
  try {
    showSeen(drawing.isRecognizable ? await asking.guesser.see(drawing.state) : null);
  } catch {
    showSeen(null); // the guesses say what is wrong
  }
  isSeeing = false;
}

// Tools

function setPen(width) {
  pen.valueAsNumber = width;
  pen.dispatchEvent(new Event("input"));
}

function use({ strokes, picture = null, pen: width = null }) {
  if (width) setPen(width);
  drawing.replace({ strokes, picture });
  at("paper").scrollIntoView({ block: "nearest" }); // on a phone it may be above what was clicked
}

const share = () => drawing.strokes.length && showLink(drawing.strokes, pen.valueAsNumber, notify);

const KEYS = {
  z: () => drawing.undo(),
  y: () => drawing.redo(),
  c: () => drawing.clear(),
  o: () => at("open").click(),
  s: share,
  p: () => savePng(drawing, pen.valueAsNumber),
  j: () => saveJson(drawing),
  n: () => at("see").click(),
  "[": () => setPen(pen.valueAsNumber - 2),
  "]": () => setPen(pen.valueAsNumber + 2),
};
const GAME_KEYS = ["z", "y", "c", "[", "]"]; // what makes sense while the clock runs
const BUTTONS = { undo: KEYS.z, redo: KEYS.y, clear: KEYS.c, share, png: KEYS.p, json: KEYS.j };
for (const [name, act] of Object.entries(BUTTONS)) at(name).addEventListener("click", act);

function actionOf(event) {
  const key = event.key.toLowerCase();
  if (event.altKey || event.target.closest("dialog")) return null;
  if (event.ctrlKey || event.metaKey) {
    if (key === "z") return event.shiftKey ? KEYS.y : KEYS.z;
    return key === "y" && !event.shiftKey ? KEYS.y : null;
  }
  if (game?.isPlaying && !GAME_KEYS.includes(key)) return null;
  // Plain letters only where the focus is at the drawing: elsewhere they belong to the reader's own tools.
  return at("board").contains(document.activeElement) ? KEYS[key] : null;
}

document.addEventListener("keydown", (event) => {
  const act = actionOf(event);
  if (!act) return;
  event.preventDefault();
  act();
});

document.addEventListener("click", ({ target }) => {
  if (!at("save").contains(target) || target.closest("#save button")) at("save").open = false;
});

pen.addEventListener("input", keepDrawing);
at("see").addEventListener("change", see);
takeFiles({ button: at("open"), input: at("file"), target: at("paper"), taken: takeFile, refused: notify });
prepareSharing();
offerExamples(at("examples"), use);

function takeFile(found) {
  if (game?.isPlaying) game.stop();
  use(found);
}

// The start

function begin() {
  const kept = recall();
  if (kept.pen) setPen(kept.pen);
  drawing.restart(kept.strokes);
  openLink();
}

function openLink() {
  const shared = takeShared(notify);
  if (!shared) return;
  if (game?.isPlaying) game.stop();
  use(shared); // undo brings back what was there
}

function introduce(guesser) {
  const { labels, bytes, isHere } = guesser;
  [view.idea] = pick(drawable(labels, 1), 1);
  at("place").classList.toggle("here", isHere);
  at("where").textContent = isHere
    ? "The network runs in this page: nothing that you draw leaves your machine."
    : "The network runs on the server: what you draw is sent there to be recognized, and not kept.";
  const knows = at("knows");
  knows.querySelector("summary").textContent = `It knows ${labels.length} things, in ${(bytes / 1e6).toFixed(1)} MB`;
  const item = (label) => Object.assign(document.createElement("li"), { textContent: label });
  knows.querySelector("ul").append(...labels.map(item));
  knows.hidden = false;
}

async function start() {
  begin();
  addEventListener("hashchange", openLink);
  try {
    const guesser = await findGuesser(document.querySelector("meta[name=dabnet]").dataset);
    introduce(guesser);
    game = new Game(drawing, guesser.labels, say);
    asking = new Asking(guesser, drawing, answered, failed);
    at("play").disabled = false;
    asking.ask();
  } catch (problem) {
    failed(problem);
  }
}

start();
