// Who guesses: the network in this page, or the server that the page came from.
//
// A guesser has `labels`, `bytes` of its model, `minConfidence` from which on it is sure, `isHere`, `pace` (milliseconds
// between guesses while the pen moves), `guess(drawing, top)` and `see(drawing)`, the picture that the network is given.
// A drawing has `strokes`, or a `picture` with its `blob`.

const WARM_UP = [[[0, 0], [1, 1]]];

export class BusyError extends Error {}

// Returns the network in this page, or else the server; `settings` are what the page's maker wrote into it.
export async function findGuesser(settings) {
  if (settings.network === "server") return serverGuesser();
  try {
    return await ownGuesser(Number(settings.minConfidence));
  } catch (problem) {
    if (settings.network === "page") throw problem;
    return serverGuesser(); // "either": this browser cannot run it
  }
}

async function ownGuesser(minConfidence) {
  const { Recognizer } = await import("./dabnet.js");
  const [wasm, model] = await Promise.all([bytesOf("dabnet.wasm"), bytesOf("model.safetensors")]);
  const recognizer = await Recognizer.load({ wasm, model });
  recognizer.recognize(WARM_UP); // browsers compile what runs first, and the first stroke should not wait for it
  return {
    isHere: true,
    labels: recognizer.labels,
    bytes: model.byteLength,
    minConfidence,
    pace: 0,
    async guess({ strokes, picture }, top) {
      const begun = performance.now();
      const guesses = recognizer.recognize(picture ? picture.pixels : strokes, { top });
      return { guesses, milliseconds: performance.now() - begun };
    },
    async see({ strokes, picture }) {
      const ink = recognizer.draw(picture ? picture.pixels : strokes);
      return createImageBitmap(toGreys(ink, recognizer.inputSize));
    },
  };
}

function toGreys(ink, [, height, width]) {
  const image = new ImageData(width, height);
  for (let i = 0; i < ink.length; i += 1) image.data.set([255 * ink[i], 255 * ink[i], 255 * ink[i], 255], 4 * i);
  return image;
}

// The bytes of a file beside the page, or of the element that holds it as base64 where the page is one file.
async function bytesOf(name) {
  const element = document.querySelector(`script[data-file="${name}"]`);
  if (element) return Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name} is missing: write the page again with 'dabnet page'.`);
  return new Uint8Array(await answer.arrayBuffer());
}

async function serverGuesser() {
  const model = await (await fetch("v1/model")).json();
  return {
    isHere: false,
    labels: model.labels,
    bytes: model.bytes,
    minConfidence: model.min_confidence,
    pace: 120,
    async guess(drawing, top) {
      const found = await (await post(`v1/recognize?top=${top}`, drawing)).json();
      return { guesses: found.guesses, milliseconds: found.milliseconds.total };
    },
    async see(drawing) {
      return createImageBitmap(await (await post("v1/raster", drawing)).blob());
    },
  };
}

async function post(path, { strokes, picture }) {
  const body = picture ? picture.blob : JSON.stringify({ strokes });
  const type = picture ? picture.blob.type : "application/json";
  const answer = await fetch(path, { method: "POST", headers: { "content-type": type }, body });
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({ error: `The server's answer was ${answer.status}.` }));
  throw answer.status === 503 ? new BusyError(error) : new Error(error);
}
