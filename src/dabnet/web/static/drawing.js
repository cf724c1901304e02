// The drawing: strokes in units of its own, or a picture, with what it was before and what was undone.

export const SIDE = 1000; // the paper's width and height, whatever the screen's
const LEAST_MOVE = 2; // of the pen, to be worth a point
const MAX_POINTS = 30_000; // of a drawing: what the server takes at most, and a little less
const MAX_STEPS = 500; // that can be undone
const EMPTY = { strokes: [], picture: null };

export class Drawing {
  #past = [];
  #future = [];
  #points = 0;
  #watchers = [];

  constructor() {
    this.state = EMPTY; // never changed, but for the last stroke while it is drawn
    this.stroke = null; // the one that is being drawn, also the last of the strokes
  }

  get strokes() {
    return this.state.strokes;
  }

  get picture() {
    return this.state.picture;
  }

  get isEmpty() {
    return !this.picture && !this.strokes.length;
  }

  get canUndo() {
    return this.#past.length > 0;
  }

  get canRedo() {
    return this.#future.length > 0;
  }

  // Whether there is something to recognize: a single point is no drawing yet.
  get isRecognizable() {
    if (this.picture) return true;
    const [first] = this.strokes[0] ?? [];
    return this.strokes.some((stroke) => stroke.some(([x, y]) => x !== first[0] || y !== first[1]));
  }

  // Calls a function after each change, and says whether the pen is still down.
  watch(watcher) {
    this.#watchers.push(watcher);
  }

  begin(point) {
    this.stroke = [point];
    this.#change({ strokes: [...this.strokes, this.stroke], picture: null });
  }

  extend(point) {
    const [x, y] = this.stroke.at(-1);
    if (Math.hypot(point[0] - x, point[1] - y) < LEAST_MOVE || this.#points >= MAX_POINTS) return;
    this.stroke.push(point);
    this.#points += 1;
    this.#tell();
  }

  finish() {
    this.stroke = null;
    this.#tell();
  }

  clear() {
    if (!this.isEmpty) this.replace(EMPTY);
  }

  // Puts another drawing in its place; `undo` brings this one back.
  replace({ strokes = [], picture = null }) {
    this.stroke = null;
    this.#change({ strokes, picture });
  }

  // Begins anew with strokes: there is nothing to undo.
  restart(strokes = []) {
    this.resume({ state: { strokes, picture: null }, past: [], future: [] });
  }

  // Returns all of it, for `resume` to bring back.
  suspend() {
    return { state: this.state, past: this.#past, future: this.#future };
  }

  resume({ state, past, future }) {
    [this.#past, this.#future] = [past, future];
    this.#set(state);
  }

  undo() {
    if (!this.canUndo) return;
    this.#future.push(this.state);
    this.#set(this.#past.pop());
  }

  redo() {
    if (!this.canRedo) return;
    this.#past.push(this.state);
    this.#set(this.#future.pop());
  }

  #change(state) {
    this.#past.push(this.state);
    if (this.#past.length > MAX_STEPS) this.#past.shift();
    this.#future = [];
    this.#set(state, this.stroke);
  }

  #set(state, stroke = null) {
    this.state = state;
    this.stroke = stroke;
    this.#points = state.strokes.reduce((sum, each) => sum + each.length, 0);
    this.#tell();
  }

  #tell() {
    for (const watcher of this.#watchers) watcher({ isMoving: this.stroke !== null });
  }
}
