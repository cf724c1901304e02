// Asks `dabnet serve` what drawings show, in Node from version 18 on; `fetch` is the same in a browser.
//
//     node ask_the_server.mjs http://127.0.0.1:8000 FILE...
//
// A file holds strokes as JSON, an SVG or a picture. A server that is busy answers 503, and is asked again.
import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";

const TYPES = { json: "application/json", svg: "image/svg+xml" };

async function recognize(server, name, top = 3) {
  const headers = { "content-type": TYPES[name.split(".").pop()] ?? "application/octet-stream" };
  const body = await readFile(name);
  for (const milliseconds of [100, 500, 2000, null]) {
    const answer = await fetch(`${server}/v1/recognize?top=${top}`, { method: "POST", headers, body });
    const said = await answer.json();
    if (answer.ok) return said.guesses;
    if (answer.status !== 503 || milliseconds === null) throw new Error(`${name}: ${said.error}`);
    await wait(milliseconds);
  }
}

const [server, ...names] = process.argv.slice(2);
for (const name of names) {
  const guesses = await recognize(server.replace(/\/$/, ""), name);
  console.log(`${name}: ${guesses.map((each) => `${each.label} ${Math.round(100 * each.probability)}%`).join(", ")}`);
}
