// Recognizes free-hand sketches in a page, a worker or Node: the core of dabnet as WebAssembly, and what carries
// numbers to it and back. Reading, checking, planning and running a model is the core's work: see native/dabnet.h.

const ABI_VERSION = 1;
const SENTENCE_BYTES = 16384;
const OPTIONS = { bytes: 32, maxMemory: 8, maxWork: 16, kernels: 24 }; // where they stand in dabnet_options
const MOST_PIXELS = 1 << 24; // of a decoded picture; a larger one is decoded at reduced scale

/** Tells what a sketch shows. */
export class Recognizer {
  #core;

  /** Use `Recognizer.load`. */
  constructor(core) {
    this.#core = core;
    const { input, labels, kernels } = core.describe();
    this.labels = Object.freeze(labels);
    this.inputSize = Object.freeze(input.slice(0, 3));
    this.kernels = kernels;
  }

  /** Opens a model in memory of its own, so that a file that is refused leaves nothing behind. */
  static async load({ wasm, model, ...options } = {}) {
    const [module, bytes] = await Promise.all([compile(wasm), readBytes(model, "model")]);
    const core = await Core.start(module);
    core.open(bytes, options);
    return new Recognizer(core);
  }

  /** Returns the likeliest labels of strokes or of a picture's pixels, the likeliest first. */
  recognize(drawing, { top = 5 } = {}) {
    if (!(top >= 1)) throw new Error(`an answer has at least one label: top must be 1 or more, not ${top}.`);
    if (this.labels.length === 0) {
      throw new Error("the model has no labels, so its answers have no names: export it with labels.");
    }
    const ranked = this.#core.rank(this.run(this.draw(drawing)), Math.min(Math.floor(top), this.labels.length));
    return ranked.map(([index, probability]) => ({ label: this.labels[index], probability }));
  }

  /** Has the browser decode a picture, and recognizes it. */
  async recognizeImage(image, options) {
    return this.recognize(await readPixels(image), options);
  }

  /** Returns a drawing as the network sees it: ink 1 on 0. */
  draw(drawing) {
    if (Array.isArray(drawing)) return this.#core.drawStrokes(...flatten(drawing));
    if (ArrayBuffer.isView(drawing?.data)) return this.#core.drawPicture(drawing);
    throw new Error("a drawing is strokes, [[[x, y], ...], ...], or a picture's ImageData.");
  }

  /** Returns the logits of an image, or of several that stand one after the other. */
  run(images) {
    return this.#core.run(images);
  }

  /** Gives its memory back at once, and not only when nothing refers to it any more. */
  close() {
    this.#core.end("the recognizer is closed: load another.");
  }
}

// An instance of the core with one model. Where the core is stopped (there is no more memory), it is not used again.
class Core {
  #exports;
  #model = 0;
  #sentence;
  #ended = "";

  static async start(module) {
    const core = new Core();
    // The core needs a clock, and has no files: all else that its C library could ask for fails.
    const clock = (_id, _precision, at) => {
      new DataView(core.#buffer).setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    };
    const system = {};
    for (const { name } of WebAssembly.Module.imports(module)) {
      system[name] = name === "clock_time_get" ? clock : () => 52; // "not supported"
    }
    core.#exports = (await WebAssembly.instantiate(module, { wasi_snapshot_preview1: system })).exports;
    core.#exports._initialize();
    if (core.#exports.dabnet_abi_version() !== ABI_VERSION) {
      throw new Error("dabnet.js and dabnet.wasm are of different versions: take both from one package.");
    }
    core.#sentence = core.#exports.malloc(SENTENCE_BYTES);
    return core;
  }

  get #buffer() {
    return this.#exports.memory.buffer;
  }

  end(why) {
    this.#ended = why;
    this.#exports = null;
  }

  // Calls work(take, put): `take` lends so many bytes, and `put` such as hold an array's, until the work is done.
  // Taking memory may move all of it, so views of it are made anew.
  #use(work) {
    if (this.#ended) throw new Error(this.#ended);
    const lent = [];
    const take = (bytes) => {
      const at = bytes < 2 ** 32 ? this.#exports.malloc(Math.max(bytes, 1)) : 0;
      if (at === 0) throw new WebAssembly.RuntimeError("out of memory");
      lent.push(at);
      return at;
    };
    const put = (array) => {
      const at = take(array.byteLength);
      new Uint8Array(this.#buffer).set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), at);
      return at;
    };
    try {
      return work(take, put);
    } catch (problem) {
      if (problem instanceof WebAssembly.RuntimeError || problem instanceof RangeError) {
        this.end("the recognizer has run out of memory: load it again.");
        throw new Error(this.#ended, { cause: problem });
      }
      throw problem;
    } finally {
      if (!this.#ended) lent.forEach(this.#exports.free);
    }
  }

  // Calls a function that says in a sentence what is wrong.
  #call(name, ...values) {
    const status = this.#exports[name](...values, this.#sentence, SENTENCE_BYTES);
    if (status !== 0) throw new Error(this.#text(this.#sentence));
  }

  #text(at) {
    const bytes = new Uint8Array(this.#buffer, at);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }

  #word(at) {
    return new DataView(this.#buffer).getUint32(at, true);
  }

  open(bytes, { maxMemory, maxWork, kernels }) {
    if (maxMemory !== undefined && !(maxMemory >= 0)) {
      throw new Error(`maxMemory is a number of bytes, not ${maxMemory}.`);
    }
    if (maxWork !== undefined && !(maxWork >= 0)) {
      throw new Error(`maxWork is a number of multiply-adds, not ${maxWork}.`);
    }
    this.#use((take, put) => {
      const [options, found, file] = [take(OPTIONS.bytes), take(4), put(bytes)];
      this.#exports.dabnet_default_options(options);
      const name = kernels === undefined ? 0 : put(new TextEncoder().encode(`${kernels}\0`));
      const view = new DataView(this.#buffer, options);
      if (maxMemory !== undefined) {
        view.setBigUint64(OPTIONS.maxMemory, BigInt(Math.floor(Math.min(maxMemory, 2 ** 53))), true);
      }
      if (maxWork !== undefined) view.setFloat64(OPTIONS.maxWork, maxWork, true);
      view.setUint32(OPTIONS.kernels, name, true);
      this.#call("dabnet_open", file, bytes.length, options, found);
      this.#model = this.#word(found);
    });
  }

  describe() {
    return this.#use((take) => {
      const found = take(4);
      if (this.#exports.dabnet_about(this.#model, found) !== 0) throw new WebAssembly.RuntimeError("out of memory");
      const json = this.#text(this.#word(found));
      this.#exports.dabnet_free(this.#word(found));
      return JSON.parse(json);
    });
  }

  #draw(name, work) {
    return this.#use((take, put) => {
      const count = this.#exports.dabnet_input_count(this.#model);
      const [values, image] = [work(put), take(4 * count)];
      this.#call(name, this.#model, ...values, image);
      return new Float32Array(this.#buffer, image, count).slice();
    });
  }

  drawStrokes(points, ends) {
    return this.#draw("dabnet_draw_strokes", (put) => [put(points), put(ends), ends.length]);
  }

  drawPicture({ data, width, height }) {
    if (data.BYTES_PER_ELEMENT !== 1 || data.length !== 4 * width * height) {
      throw new Error("a picture's ImageData has 4 bytes for each of its pixels.");
    }
    return this.#draw("dabnet_draw_picture", (put) => [put(data), width, height, 4]);
  }

  run(images) {
    return this.#use((take, put) => {
      const [inputs, answers] = ["input", "answer"].map((kind) => this.#exports[`dabnet_${kind}_count`](this.#model));
      if (!(images instanceof Float32Array) || images.length % inputs !== 0) {
        throw new Error(`the model takes a Float32Array of ${inputs} numbers for each image.`);
      }
      const batch = images.length / inputs;
      const [from, to] = [put(images), take(4 * batch * answers)];
      this.#call("dabnet_run", this.#model, from, batch, to, 0, 0);
      return new Float32Array(this.#buffer, to, batch * answers).slice();
    });
  }

  // The numbers of the likeliest labels, and their probabilities.
  rank(logits, top) {
    return this.#use((take, put) => {
      const [from, labels, probabilities, found] = [put(logits), take(4 * top), take(8 * top), take(4)];
      this.#exports.dabnet_rank(this.#model, from, top, labels, probabilities, found);
      const count = this.#word(found);
      const chances = new Float64Array(this.#buffer, probabilities, count);
      return Array.from(new Uint32Array(this.#buffer, labels, count), (label, i) => [label, chances[i]]);
    });
  }
}

// The points of all strokes, x and y in turn, and where each stroke ends. The core looks at the numbers.
function flatten(strokes) {
  const points = [];
  const ends = [];
  strokes.forEach((stroke, number) => {
    if (!Array.isArray(stroke) || stroke.some((point) => point?.length !== 2)) {
      throw new Error(`stroke ${number + 1} is not a list of points: write it as [[x, y], [x, y], ...].`);
    }
    for (const point of stroke) points.push(...Array.from(point, (value) => (typeof value === "number" ? value : NaN)));
    if (stroke.length !== 0) ends.push(BigInt(points.length / 2));
  });
  return [Float32Array.from(points), BigInt64Array.from(ends)];
}

async function compile(source) {
  const wasm = await source;
  if (wasm instanceof WebAssembly.Module) return wasm;
  const given = await open(wasm, "wasm");
  const streams = given instanceof Response && given.headers.get("content-type") === "application/wasm";
  const compiled = streams ? WebAssembly.compileStreaming(given) : WebAssembly.compile(await readBytes(given, "wasm"));
  return compiled.catch((cause) => {
    throw new Error(`dabnet.wasm cannot be used here: ${cause.message}`, { cause });
  });
}

async function readBytes(source, what) {
  const given = await open(source, what);
  return given instanceof Response ? new Uint8Array(await given.arrayBuffer()) : given;
}

// Bytes as they are, and what answers for a URL.
async function open(source, what) {
  let given = await source;
  if (given instanceof ArrayBuffer) return new Uint8Array(given);
  if (ArrayBuffer.isView(given)) return new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  if (typeof given === "string" || given instanceof URL) {
    const address = given;
    given = await fetch(address).catch((cause) => {
      throw new Error(`${what}: ${address} cannot be fetched here: give its bytes instead.`, { cause });
    });
  }
  if (!(given instanceof Response)) throw new Error(`${what} must be bytes, a URL or a Response.`);
  if (!given.ok) throw new Error(`${what}: ${given.url} was answered with ${given.status} ${given.statusText}.`);
  return given;
}

// Whatever a canvas can draw, or a file of it, as ImageData.
async function readPixels(image) {
  if (typeof createImageBitmap === "undefined") {
    throw new Error("pictures are decoded by a browser: here, give recognize their pixels, { data, width, height }.");
  }
  const asItIs = { premultiplyAlpha: "none", colorSpaceConversion: "none" };
  const bitmap = await createImageBitmap(image, asItIs).catch((cause) => {
    throw new Error("the picture cannot be decoded here: give a PNG, JPEG, WebP or GIF.", { cause });
  });
  const scale = Math.min(1, Math.sqrt(MOST_PIXELS / (bitmap.width * bitmap.height)));
  const [width, height] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.floor(side * scale)));
  const canvas =
    typeof OffscreenCanvas === "undefined"
      ? Object.assign(document.createElement("canvas"), { width, height })
      : new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  return context.getImageData(0, 0, width, height);
}
