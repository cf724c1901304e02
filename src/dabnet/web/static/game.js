// The game: it names a thing, you have 20 seconds to draw it, and the network guesses along; six rounds, then the score.
import { thumbnail } from "./paper.js";
import { bestScore, keepBestScore } from "./storage.js";
import { drawable, pick } from "./things.js";

const ROUNDS = 6;
const SECONDS = 20;
const WARNING = 5; // seconds left that are said aloud
const LEAST = 0.2; // how likely the first guess must be to count: not every first line is a snake
const TICK = 100; // milliseconds
const PAUSE = 500; // milliseconds before a pen that still moves, or the space bar, can press the button

const at = (id) => document.getElementById(id);

export class Game {
  #rounds = []; // { thing, strokes, seconds }: seconds is null if it was not guessed
  #things = [];
  #kept = null; // what was on the paper before
  #end = 0;
  #timer = null;
  #warned = false;
  #guess = null; // the network's last

  constructor(drawing, labels, say) {
    Object.assign(this, { drawing, labels, say, thing: null });
    at("play").addEventListener("click", () => (this.isPlaying ? this.stop() : this.start()));
    at("leave").addEventListener("click", () => this.stop());
    at("go").addEventListener("click", () => this.#go());
    at("card").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.stop();
    });
  }

  get isPlaying() {
    return this.#kept !== null;
  }

  // Whether the clock runs.
  get isDrawing() {
    return this.#timer !== null;
  }

  get score() {
    return this.#rounds.filter(({ seconds }) => seconds !== null).length;
  }

  start() {
    this.#kept ??= this.drawing.suspend();
    this.#rounds = [];
    this.#things = pick(drawable(this.labels, ROUNDS), ROUNDS);
    document.body.classList.add("playing");
    at("play-label").textContent = "Stop";
    this.#present();
  }

  stop() {
    this.#stopClock();
    this.#hideCard();
    document.body.classList.remove("playing");
    at("play-label").textContent = "Play";
    at("invitation").textContent = "Draw here";
    const kept = this.#kept;
    this.#kept = this.thing = null;
    this.drawing.resume(kept);
    at("play").focus();
  }

  // Takes a guess while the clock runs.
  hear({ guesses: [first] }) {
    if (!this.isDrawing) return;
    this.#guess = first.label;
    if (first.label === this.thing && first.probability >= LEAST) this.#finish(true);
  }

  #present() {
    this.thing = this.#things[this.#rounds.length];
    this.drawing.restart();
    at("invitation").textContent = `Draw: ${this.thing}`;
    const round = `Round ${this.#rounds.length + 1} of ${this.#things.length}`;
    this.#showCard({ over: `${round} · draw`, title: this.thing, text: `in ${SECONDS} seconds`, go: "Go" });
  }

  #go() {
    if (at("card").classList.contains("results")) this.start();
    else if (this.#rounds.length === this.#things.length) this.#showResults();
    else if (at("card").classList.contains("low")) this.#present();
    else this.#startClock();
  }

  #startClock() {
    this.#hideCard();
    this.drawing.restart();
    this.#end = performance.now() + SECONDS * 1000;
    this.#warned = false;
    this.#guess = null;
    at("clock").hidden = false;
    this.#timer = setInterval(() => this.#tick(), TICK);
    this.#tick();
    at("canvas").focus({ preventScroll: true });
    this.say(`Draw: ${this.thing}. ${SECONDS} seconds.`);
  }

  #stopClock() {
    clearInterval(this.#timer);
    this.#timer = null;
    at("clock").hidden = true;
  }

  #tick() {
    const left = Math.max(0, (this.#end - performance.now()) / 1000);
    at("clock").style.setProperty("--left", left / SECONDS);
    at("left").textContent = `${Math.ceil(left)}`;
    at("clock").classList.toggle("late", left <= WARNING);
    if (left <= WARNING && !this.#warned) {
      this.#warned = true;
      this.say(`${WARNING} seconds left.`);
    }
    if (left === 0) this.#finish(false);
  }

  #finish(isGuessed) {
    const seconds = SECONDS - Math.max(0, (this.#end - performance.now()) / 1000);
    this.#stopClock();
    this.drawing.stroke = null;
    this.#rounds.push({ thing: this.thing, strokes: this.drawing.strokes, seconds: isGuessed ? seconds : null });
    const title = isGuessed ? `I see it: ${this.thing}!` : "Time is up";
    const missed = this.#guess ? `My guess was: ${this.#guess}.` : "There was nothing to guess.";
    const text = isGuessed ? `It took you ${seconds.toFixed(1)} seconds.` : missed;
    const go = this.#rounds.length < this.#things.length ? "Next" : "See the score";
    this.#showCard({ over: "", title, text, go, kind: isGuessed ? "low won" : "low" });
  }

  #showResults() {
    const best = bestScore();
    this.thing = null;
    this.drawing.restart();
    if (this.score > best) keepBestScore(this.score);
    const text = this.score > best ? "Your best so far." : `Your best: ${best} of ${ROUNDS}.`;
    const title = `${this.score} of ${this.#rounds.length}`;
    this.#showCard({ over: "I guessed", title, text, go: "Play again", kind: "results" });
    at("shelf").replaceChildren(...this.#rounds.map(shelfItem));
  }

  #showCard({ over, title, text, go, kind = "" }) {
    at("card").className = `card ${kind}`;
    at("card-over").textContent = over;
    at("card-title").textContent = title;
    at("card-text").textContent = text;
    at("shelf").replaceChildren();
    at("go").textContent = go;
    at("card").hidden = false;
    at("canvas").inert = true;
    if (kind.startsWith("low")) this.#pause();
    else at("go").focus({ preventScroll: true });
    this.say([over, title, text].filter(Boolean).join(". "));
  }

  #pause() {
    at("go").disabled = true;
    setTimeout(() => {
      at("go").disabled = false;
      if (!at("card").hidden) at("go").focus({ preventScroll: true });
    }, PAUSE);
  }

  #hideCard() {
    at("card").hidden = true;
    at("canvas").inert = false;
  }
}

function shelfItem({ thing, strokes, seconds }) {
  const item = document.createElement("li");
  item.className = seconds === null ? "missed" : "guessed";
  const name = document.createElement("span");
  name.textContent = thing;
  const mark = document.createElement("span");
  mark.className = "unseen";
  mark.textContent = seconds === null ? ", not guessed" : `, guessed in ${seconds.toFixed(0)} seconds`;
  item.append(thumbnail(strokes, 144), name, mark);
  return item;
}
