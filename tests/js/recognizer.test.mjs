// What a program in JavaScript is promised: DABNET_WASM and DABNET_MODEL name the files.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import process from "node:process";
import test from "node:test";

import { Recognizer } from "../../js/dabnet.js";

const wasm = await readFile(process.env.DABNET_WASM);
const model = await readFile(process.env.DABNET_MODEL);
const ARROW = [[[0, 50], [100, 50]], [[70, 20], [100, 50], [70, 80]]];
const expected = (await Recognizer.load({ wasm, model })).recognize(ARROW);

const saying = (message) => ({ name: "Error", message });

test("the core asks its host for a clock, and else only where to complain", async () => {
  const asked = WebAssembly.Module.imports(await WebAssembly.compile(wasm)).map(({ name }) => name);
  assert.deepEqual(asked.sort(), ["clock_time_get", "fd_close", "fd_seek", "fd_write"]);
});

test("an answer has labels with probabilities, the likeliest first", async () => {
  const recognizer = await Recognizer.load({ wasm, model });
  assert.equal(expected.length, 5);
  assert.ok(expected.every(({ label }) => recognizer.labels.includes(label)));
  const chances = expected.map(({ probability }) => probability);
  assert.ok(chances.every((chance, i) => chance > 0 && chance <= (chances[i - 1] ?? 1)));
  assert.deepEqual(recognizer.recognize(ARROW, { top: 2 }), expected.slice(0, 2));
  const all = recognizer.recognize(ARROW, { top: 1e9 });
  assert.equal(all.length, recognizer.labels.length);
  assert.ok(Math.abs(all.reduce((sum, { probability }) => sum + probability, 0) - 1) < 1e-12);
});

test("drawing and running are the two halves of recognizing", async () => {
  const recognizer = await Recognizer.load({ wasm, model });
  const image = recognizer.draw(ARROW);
  assert.equal(image.length, recognizer.inputSize.reduce((a, b) => a * b));
  const logits = recognizer.run(image);
  assert.equal(logits.length, recognizer.labels.length);
  assert.equal(recognizer.labels[logits.indexOf(Math.max(...logits))], expected[0].label);
  const twice = recognizer.run(Float32Array.from([...image, ...image]));
  assert.deepEqual(twice, Float32Array.from([...logits, ...logits]));
  assert.deepEqual(recognizer.run(new Float32Array()), new Float32Array());
});

test("files come as bytes, buffers, views, modules, promises, responses or addresses", async (t) => {
  const compiled = await WebAssembly.compile(wasm);
  const copy = (bytes) => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const server = createServer(({ url }, answer) => {
    if (url === "/missing") answer.writeHead(404).end();
    else if (url === "/streamed") answer.writeHead(200, { "content-type": "application/wasm" }).end(wasm);
    else answer.end(url === "/wasm" ? wasm : model);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => server.close());
  const address = `http://127.0.0.1:${server.address().port}`;
  for (const given of [
    { wasm: new Uint8Array(wasm), model: copy(model) },
    { wasm: compiled, model: new DataView(copy(model)) },
    { wasm: Promise.resolve(compiled), model: Promise.resolve(model) },
    { wasm: new Response(wasm), model: new Response(model) },
    { wasm: `${address}/wasm`, model: new URL(`${address}/model`) },
    { wasm: `${address}/streamed`, model },
    { wasm: fetch(`${address}/wasm`), model: fetch(`${address}/model`) },
  ]) {
    assert.deepEqual((await Recognizer.load(given)).recognize(ARROW), expected);
  }
  await assert.rejects(
    Recognizer.load({ wasm, model: `${address}/missing` }),
    saying(`model: ${address}/missing was answered with 404 Not Found.`),
  );
  await assert.rejects(
    Recognizer.load({ wasm: "file:///dabnet.wasm", model }),
    saying("wasm: file:///dabnet.wasm cannot be fetched here: give its bytes instead."),
  );
  await assert.rejects(Recognizer.load({ wasm, model: 5 }), saying("model must be bytes, a URL or a Response."));
  await assert.rejects(Recognizer.load(), saying(/must be bytes, a URL or a Response.$/));
  await assert.rejects(Recognizer.load({ model }), saying("wasm must be bytes, a URL or a Response."));
  await assert.rejects(Recognizer.load({ wasm: model, model }), /^Error: dabnet.wasm cannot be used here: /);
});

test("a refused file leaves the module usable, and other recognizers alone", async () => {
  const compiled = await WebAssembly.compile(wasm);
  const recognizer = await Recognizer.load({ wasm: compiled, model });
  const broken = Uint8Array.from(model);
  broken[9] ^= 1;
  await assert.rejects(Recognizer.load({ wasm: compiled, model: broken }), saying(/^it is not a safetensors file/));
  const empty = new Uint8Array();
  await assert.rejects(Recognizer.load({ wasm: compiled, model: empty }), saying(/^it is not a safetensors file/));
  assert.deepEqual(recognizer.recognize(ARROW), expected);
  assert.deepEqual((await Recognizer.load({ wasm: compiled, model })).recognize(ARROW), expected);
});

test("limits of memory and of work are kept, and kernels chosen by name", async () => {
  await assert.rejects(
    Recognizer.load({ wasm, model, maxMemory: 1000 }),
    saying("the model takes more than 1,000 bytes of memory: raise max_memory if you trust it."),
  );
  await assert.rejects(
    Recognizer.load({ wasm, model, maxMemory: NaN }),
    saying("maxMemory is a number of bytes, not NaN."),
  );
  await assert.rejects(
    Recognizer.load({ wasm, model, maxWork: NaN }),
    saying("maxWork is a number of multiply-adds, not NaN."),
  );
  const unlimited = await Recognizer.load({ wasm, model, maxMemory: Infinity, maxWork: 1e300 });
  assert.deepEqual(unlimited.recognize(ARROW), expected);
  await assert.rejects(Recognizer.load({ wasm, model, maxWork: 1000 }), saying(/billion multiply-adds for one/));
  await assert.rejects(Recognizer.load({ wasm, model, kernels: "x86" }), saying(/^there are no kernels 'x86'/));
  const portable = await Recognizer.load({ wasm, model, kernels: "portable" });
  assert.equal(portable.kernels, "portable");
  assert.deepEqual(portable.recognize(ARROW), expected);
});

test("what is no drawing is refused in a sentence, and the next one is answered", async () => {
  const recognizer = await Recognizer.load({ wasm, model });
  const refused = (drawing, message, options) =>
    assert.throws(() => recognizer.recognize(drawing, options), saying(message));
  const wrong = "a drawing is strokes, [[[x, y], ...], ...], or a picture's ImageData.";
  for (const drawing of [undefined, null, 5, "strokes", {}, { data: [1, 2, 3, 4], width: 1, height: 1 }]) {
    refused(drawing, wrong);
  }
  refused([[0, 1]], "stroke 1 is not a list of points: write it as [[x, y], [x, y], ...].");
  refused([[[0, 0], [1]]], "stroke 1 is not a list of points: write it as [[x, y], [x, y], ...].");
  refused([[[0, 0], [1, "1"]]], "the drawing has a coordinate that is not a finite number: remove that point.");
  refused([[[0, 0], [1, NaN]]], "the drawing has a coordinate that is not a finite number: remove that point.");
  refused([Array(40000).fill([0, 1])], /^the drawing has 40,000 points, more than 32,768/);
  const short = { data: new Uint8Array(4), width: 2, height: 1 };
  refused(short, "a picture's ImageData has 4 bytes for each of its pixels.");
  refused({ data: new Uint8Array(0), width: 0, height: 0 }, /^a picture has 1 to 134,217,728 pixels/);
  refused(ARROW, "an answer has at least one label: top must be 1 or more, not 0.", { top: 0 });
  refused(ARROW, "an answer has at least one label: top must be 1 or more, not NaN.", { top: NaN });
  assert.throws(() => recognizer.run(new Float32Array(5)), saying(/^the model takes a Float32Array of \d+ numbers/));
  assert.throws(() => recognizer.run([1]), saying(/^the model takes a Float32Array/));
  assert.throws(() => recognizer.run(recognizer.draw(ARROW).fill(NaN)), saying(/^a sketch holds a NaN/));
  await assert.rejects(recognizer.recognizeImage({}), saying(/^pictures are decoded by a browser/));
  assert.deepEqual(recognizer.recognize(ARROW), expected);
});

test("a closed recognizer says so", async () => {
  const recognizer = await Recognizer.load({ wasm, model });
  recognizer.close();
  assert.throws(() => recognizer.recognize(ARROW), saying("the recognizer is closed: load another."));
});

test("any number of drawings, good and bad, takes the memory of one", async (t) => {
  const { instantiate } = WebAssembly;
  let memory;
  t.mock.method(WebAssembly, "instantiate", async (...given) => {
    const instance = await instantiate(...given);
    ({ memory } = instance.exports);
    return instance;
  });
  const recognizer = await Recognizer.load({ wasm, model });
  const picture = { data: new Uint8Array(4 * 300 * 200).fill(255), width: 300, height: 200 };
  const all = () => {
    recognizer.recognize(ARROW);
    assert.throws(() => recognizer.recognize([[[1, 1]]]));
    assert.throws(() => recognizer.recognize(picture));
  };
  all();
  const bytes = memory.buffer.byteLength;
  for (let i = 0; i < 500; ++i) all();
  assert.equal(memory.buffer.byteLength, bytes);
});

test("where memory runs out, a recognizer says so, and another can be loaded", () => {
  const program = `
    const { readFileSync } = await import("node:fs");
    const { Recognizer } = await import(${JSON.stringify(new URL("../../js/dabnet.js", import.meta.url))});
    const [wasm, model] = [process.env.DABNET_WASM, process.env.DABNET_MODEL].map((name) => readFileSync(name));
    const recognizer = await Recognizer.load({ wasm, model });
    const picture = { data: new Uint8Array(4 * 4000 * 4000), width: 4000, height: 4000 };
    for (const drawing of [picture, ${JSON.stringify(ARROW)}]) {
      try { recognizer.recognize(drawing); } catch ({ message }) { console.log(message); }
    }
    console.log(JSON.stringify((await Recognizer.load({ wasm, model })).recognize(${JSON.stringify(ARROW)})));`;
  const flags = ["--wasm-max-mem-pages=500", "--input-type=module", "-e", program]; // 31 MB
  const said = execFileSync(process.execPath, flags, { encoding: "utf8" }).trim().split("\n");
  const sentence = "the recognizer has run out of memory: load it again.";
  assert.deepEqual(said, [sentence, sentence, JSON.stringify(expected)]);
});
