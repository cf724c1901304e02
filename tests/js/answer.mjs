// Has the core in WebAssembly open, draw and run what Python wrote down: node answer.mjs DABNET.WASM FOLDER
//
// cases.json has a list of { model, input, strokes, picture, options }, each that is there but strokes and options as
// [offset, bytes] in cases.bin; of { width, height }, too, for a picture. What comes out goes to answers.json: for each
// case { sentence } or { kernels, guesses }, and [offset, bytes] in answers.bin of what was drawn and of the logits.
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";

import { Recognizer } from "../../js/dabnet.js";

const [wasm, folder] = process.argv.slice(2);
const module = await WebAssembly.compile(await readFile(wasm));
const given = await readFile(`${folder}/cases.bin`);
const bytes = ([offset, length]) => given.subarray(offset, offset + length);
const written = [];
let end = 0;

function write(array) {
  written.push(Buffer.from(array.buffer, array.byteOffset, array.byteLength));
  end += array.byteLength;
  return [end - array.byteLength, array.byteLength];
}

async function answer({ model, input, strokes, picture, options }) {
  const recognizer = await Recognizer.load({ wasm: module, model: bytes(model), ...options });
  const { kernels } = recognizer;
  if (input) return { kernels, logits: write(recognizer.run(new Float32Array(Uint8Array.from(bytes(input)).buffer))) };
  const drawing = strokes ?? { ...picture, data: bytes(picture.data) };
  return { kernels, drawn: write(recognizer.draw(drawing)), guesses: recognizer.recognize(drawing, options) };
}

const answers = [];
for (const one of JSON.parse(await readFile(`${folder}/cases.json`))) {
  answers.push(await answer(one).catch(({ message }) => ({ sentence: message })));
}
await writeFile(`${folder}/answers.json`, JSON.stringify(answers));
await writeFile(`${folder}/answers.bin`, Buffer.concat(written));
