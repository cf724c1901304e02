// Runs dabnet and onnxruntime-web, each on one thread, in Node and in pages; see browser.py.
//
//     node browser.mjs FOLDER race ROUNDS     in a page, race(ROUNDS)
//     node browser.mjs FOLDER start ENGINE    in a page, start(ENGINE)
const RUNS = 20; // at a time: browsers' clocks are coarse
const WARM_UP = 5; // rounds that are not counted
const inNode = typeof process !== "undefined" && process.versions?.node !== undefined;
const base = inNode ? new URL(`${process.argv[2]}/`, "file://") : new URL("./", import.meta.url);

async function read(name) {
  if (inNode) return (await import("node:fs/promises")).readFile(new URL(name, base));
  return new Uint8Array(await (await fetch(new URL(name, base))).arrayBuffer());
}

// Each starts from nothing, and gives what answers one image.
const ENGINES = {
  async dabnet() {
    const { Recognizer } = await import(new URL("dabnet.js", base));
    const files = { wasm: "dabnet.wasm", model: "model.safetensors" };
    for (const [what, name] of Object.entries(files)) files[what] = inNode ? read(name) : new URL(name, base);
    const recognizer = await Recognizer.load(files);
    return async (image) => recognizer.run(image);
  },
  async "onnxruntime-web"() {
    const ort = await import(inNode ? "onnxruntime-web" : new URL("ort.wasm.bundle.min.mjs", base));
    ort.env.wasm.numThreads = 1;
    const session = await ort.InferenceSession.create(await read("twin.onnx"), { executionProviders: ["wasm"] });
    const [input, output] = [session.inputNames[0], session.outputNames[0]];
    return async (image, shape) => {
      const answers = await session.run({ [input]: new ort.Tensor("float32", image, [1, ...shape]) });
      return answers[output].data;
    };
  },
};

// Drawn sketches, and the shape of each.
async function sketches() {
  const { count, shape } = JSON.parse(new TextDecoder().decode(await read("sketches.json")));
  const numbers = new Float32Array(Uint8Array.from(await read("sketches.bin")).buffer);
  const each = numbers.length / count;
  return [Array.from({ length: count }, (_, i) => numbers.slice(i * each, (i + 1) * each)), shape];
}

/** Milliseconds from the page's beginning, or the process's, to the first answer. */
export async function start(engine) {
  const [[image], shape] = await sketches();
  const run = await ENGINES[engine]();
  await run(image, shape);
  return performance.now();
}

/** Milliseconds for one sketch, of each engine: they take turns. */
export async function race(rounds) {
  const [images, shape] = await sketches();
  const times = {};
  const runs = {};
  for (const name of Object.keys(ENGINES)) {
    times[name] = [];
    runs[name] = await ENGINES[name]();
  }
  for (let round = 0; round < WARM_UP + rounds; ++round) {
    for (const [name, run] of Object.entries(runs)) {
      const begun = performance.now();
      for (let i = 0; i < RUNS; ++i) await run(images[(round * RUNS + i) % images.length], shape);
      if (round >= WARM_UP) times[name].push((performance.now() - begun) / RUNS);
    }
  }
  return times;
}

if (inNode) {
  const [what, given] = process.argv.slice(3);
  console.log(JSON.stringify(await (what === "race" ? race(Number(given)) : start(given))));
}
