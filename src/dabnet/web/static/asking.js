// Asks the guesser again whenever the drawing has changed: one question at a time, and the last one is always asked.
import { BusyError } from "./guesser.js";

const TOP = 5;
const RETRY_AFTER = 1500; // milliseconds
const SHARE_OF_TIME = 0.3; // that guessing may take while the pen moves

export class Asking {
  #next = null; // what to ask as soon as it may be: { isMoving }
  #isAsking = false;
  #restUntil = 0;

  // `answered` gets { guesses, isSure, milliseconds, isFinal }, or null where there is nothing to guess; `failed` a problem.
  constructor(guesser, drawing, answered, failed) {
    Object.assign(this, { guesser, drawing, answered, failed });
  }

  // Whether there is something newer to ask.
  get isBusy() {
    return this.#next !== null;
  }

  ask({ isMoving = false } = {}) {
    this.#next = { isMoving };
    if (!this.#isAsking) this.#run();
  }

  async #run() {
    this.#isAsking = true;
    while (this.#next) {
      if (this.#next.isMoving) await this.#rest();
      const { isMoving } = this.#next;
      this.#next = null;
      const begun = performance.now();
      await this.#askOnce(isMoving);
      const taken = performance.now() - begun;
      this.#restUntil = begun + Math.max(this.guesser.pace, taken / SHARE_OF_TIME);
    }
    this.#isAsking = false;
  }

  // Waits for the next frame, and for as long as the pace asks; a pen that was lifted meanwhile is not kept waiting.
  async #rest() {
    do await new Promise(requestAnimationFrame);
    while (this.#next.isMoving && performance.now() < this.#restUntil);
  }

  async #askOnce(isMoving) {
    const { guesser, drawing } = this;
    if (!drawing.isRecognizable) {
      this.answered(null);
      return;
    }
    try {
      const { guesses, milliseconds } = await guesser.guess(drawing.state, TOP);
      if (!drawing.isRecognizable) return; // it was cleared meanwhile, and that is asked next
      const isSure = guesses[0].probability >= guesser.minConfidence;
      this.answered({ guesses, isSure, milliseconds, isFinal: !isMoving && !this.#next });
    } catch (problem) {
      this.failed(problem);
      if (problem instanceof BusyError) setTimeout(() => this.ask(), RETRY_AFTER);
    }
  }
}
