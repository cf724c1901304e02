// Pictures and drawings from files: opened, dropped or pasted.
import { UnreadableError, strokesFromJson } from "./strokes.js";

const MAX_FILE = 32_000_000; // bytes
const MAX_PIXELS = 4_000_000; // that the network is given; larger pictures are shrunk
const MAX_DECODED = 100_000_000;
const KINDS = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];

// Lets files come in: `taken` gets { strokes } or { picture }, `refused` a sentence.
export function takeFiles({ button, input, target, taken, refused }) {
  const take = async (file) => {
    try {
      taken(await readFile(file));
    } catch (problem) {
      if (!(problem instanceof UnreadableError)) throw problem;
      refused(problem.message);
    }
  };
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files.length) take(input.files[0]);
    input.value = "";
  });
  document.addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files ?? [])][0];
    if (file) take(file);
  });
  takeDrops(target, take, refused);
}

function takeDrops(target, take, refused) {
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault(); // a picture that misses the paper must not replace the page
    target.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) target.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    target.classList.remove("dropping");
    if (!hasFiles(event)) return;
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (file) take(file);
    else refused("There is no file in what you dropped.");
  });
}

async function readFile(file) {
  if (file.size > MAX_FILE) throw new UnreadableError(`The file has more than ${MAX_FILE / 1e6} MB: shrink the picture.`);
  if (file.type === "application/json" || file.name?.endsWith(".json")) {
    return { strokes: strokesFromJson(await file.text()) };
  }
  if (!KINDS.includes(file.type)) throw new UnreadableError("Open a PNG, JPEG, WebP, GIF or BMP, or a drawing's JSON.");
  return { picture: await readPicture(file) };
}

async function readPicture(blob) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(blob, { premultiplyAlpha: "none", colorSpaceConversion: "none" });
  } catch {
    throw new UnreadableError("The picture cannot be decoded: open another, or save it again as PNG.");
  }
  const { width, height } = bitmap;
  if (width * height > MAX_DECODED) throw new UnreadableError("The picture has too many pixels: shrink it.");
  const scale = Math.min(1, Math.sqrt(MAX_PIXELS / (width * height)));
  const sheet = document.createElement("canvas");
  sheet.width = Math.max(1, Math.round(width * scale));
  sheet.height = Math.max(1, Math.round(height * scale));
  const target = sheet.getContext("2d", { willReadFrequently: true });
  target.imageSmoothingQuality = "high";
  target.drawImage(bitmap, 0, 0, sheet.width, sheet.height);
  bitmap.close();
  return {
    blob: scale < 1 ? await toJpeg(sheet) : blob, // what a server is sent
    bitmap: sheet,
    pixels: target.getImageData(0, 0, sheet.width, sheet.height),
  };
}

const toJpeg = (sheet) => new Promise((resolve) => sheet.toBlob(resolve, "image/jpeg", 0.92));
