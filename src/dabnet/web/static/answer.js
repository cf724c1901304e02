// What the page says of a drawing: the headline, five guesses with their bars, the time, and what the network sees.
import { BusyError } from "./guesser.js";

const ROWS = 5;
const BLANK = "\u00a0"; // keeps a line's height

const at = (id) => document.getElementById(id);

export const percent = (share) => (share < 0.001 ? "< 0.1 %" : `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`);

// Has a screen reader say something.
export function say(words) {
  at("spoken").textContent = words;
}

// Shows a sentence until the next stroke.
export function notify(sentence) {
  at("notice").textContent = sentence;
}

export class AnswerView {
  constructor() {
    this.rows = Array.from({ length: ROWS }, makeRow);
    at("guesses").append(...this.rows.map(({ row }) => row));
    this.idea = null; // a thing to draw
  }

  show(answer, { isPicture = false } = {}) {
    this.#fill(answer);
    if (!answer) {
      this.#say("What will it be?", this.idea ? `No idea? Try: ${this.idea}.` : "It guesses while you draw.");
      return;
    }
    const { guesses: [first], isSure } = answer;
    if (isSure) this.#say(first.label, `${percent(first.probability)} sure.`);
    else if (isPicture) this.#say("Not sure", `Perhaps ${first.label}.`);
    else this.#say("Not sure yet", `Perhaps ${first.label}. Draw on!`);
    if (answer.isFinal) announce(answer);
  }

  // Shows guesses beside the thing that is to be drawn; null when the game is over.
  showTask(answer, thing) {
    this.#fill(answer);
    const first = answer?.guesses[0].label;
    if (!thing) this.#say("That was it", "Once more?");
    else this.#say(`Draw: ${thing}`, !first ? "I guess along." : first === thing ? "I see it!" : `I see: ${first}.`);
  }

  #fill(answer) {
    const guesses = answer?.guesses ?? [];
    this.rows.forEach(({ row, label, share, bar }, i) => {
      const guess = guesses[i];
      label.textContent = guess ? guess.label : BLANK;
      share.textContent = guess ? percent(guess.probability) : BLANK;
      bar.style.setProperty("--share", guess ? guess.probability : 0);
      row.setAttribute("aria-hidden", String(!guess));
    });
    at("guesses").classList.toggle("sure", Boolean(answer?.isSure));
    at("answer").classList.toggle("empty", !guesses.length);
    at("time").textContent = answer ? `${answer.milliseconds.toFixed(1)} ms to recognize` : BLANK;
  }

  fail(problem) {
    this.#fill(null);
    if (problem instanceof TypeError) this.#say("One moment", "The server does not answer. Is it still running?");
    else if (problem instanceof BusyError) this.#say("One moment", problem.message);
    else this.#say("That did not work", problem.message);
    say(at("remark").textContent);
  }

  #say(headline, remark) {
    at("headline").textContent = headline;
    at("remark").textContent = remark;
    at("answer").classList.remove("starting");
    at("remark").title = remark;
  }
}

function makeRow() {
  const row = document.createElement("li");
  const [label, share, bar] = ["label", "share", "bar"].map((name) => {
    const part = document.createElement("span");
    part.className = name;
    row.append(part);
    return part;
  });
  bar.setAttribute("aria-hidden", "true");
  return { row, label, share, bar };
}

function announce({ guesses, isSure }) {
  const names = guesses.slice(0, 3).map(({ label, probability }) => `${label} ${percent(probability)}`);
  say(isSure ? names[0] : `Not sure yet. Perhaps ${names.join(", ")}`);
}

// Shows the picture that the network is given; nothing if there is none.
export function showSeen(bitmap) {
  const seen = at("seen");
  if (bitmap) [seen.width, seen.height] = [bitmap.width, bitmap.height];
  const target = seen.getContext("2d");
  target.clearRect(0, 0, seen.width, seen.height);
  if (bitmap) target.drawImage(bitmap, 0, 0);
}
