// Sharing a drawing by a link whose fragment holds it, so that it is sent to nobody: browsers keep fragments to themselves.
import { decode, encode } from "./codec.js";
import { UnreadableError } from "./strokes.js";

const PREFIX = "#draw=";

const at = (id) => document.getElementById(id);

// Returns { strokes, pen } of the link that the page was opened with, or null; a stranger's link may hold anything.
export function takeShared(refused) {
  if (!location.hash.startsWith(PREFIX)) return null;
  const text = location.hash.slice(PREFIX.length);
  history.replaceState(null, "", location.pathname + location.search); // a reload is to keep what was drawn since
  try {
    return decode(text);
  } catch (problem) {
    if (!(problem instanceof UnreadableError)) throw problem;
    refused(`The link is broken. ${problem.message}`);
    return null;
  }
}

// Shows the link of a drawing; `refused` gets a sentence if it is too large for one.
export function showLink(strokes, pen, refused) {
  const text = encode(strokes, pen);
  if (text === null) {
    refused("The drawing is too large for a link: save it as JSON instead.");
    return;
  }
  at("link").value = `${location.href.split("#")[0]}${PREFIX}${text}`;
  at("copied").textContent = isOwn() ? "This page is on your machine: the link works where this address does." : "";
  at("sharing").showModal();
  at("link").select();
}

const isOwn = () => location.protocol === "file:" || /^(localhost|127\.|\[::1\])/.test(location.hostname);

export function prepareSharing() {
  at("copy").addEventListener("click", async () => {
    at("link").select();
    try {
      await navigator.clipboard.writeText(at("link").value);
      at("copied").textContent = "Copied.";
    } catch {
      at("copied").textContent = "The browser does not let the page copy: the link is selected, copy it yourself.";
    }
  });
}
