/** Bytes, where to fetch them, what was fetched, or a promise of any of these. */
export type Source = Given | PromiseLike<Given>;
type Given = ArrayBuffer | ArrayBufferView | string | URL | Response;

/** Points `[x, y]` of each stroke, y downwards, at any scale. */
export type Strokes = ReadonlyArray<ReadonlyArray<readonly [x: number, y: number]>>;

/** A picture's pixels, rows from the top: red, green, blue and alpha, 0 to 255. An `ImageData` is one. */
export interface Pixels {
  readonly data: Uint8Array | Uint8ClampedArray;
  readonly width: number;
  readonly height: number;
}

export interface LoadOptions {
  /** `dabnet.wasm`, or what `WebAssembly.compile` made of it. */
  wasm: Source | WebAssembly.Module | PromiseLike<WebAssembly.Module>;
  /** A packed model: the file that `dabnet export` writes. */
  model: Source;
  /** Bytes that the model, an image and its answer may take; a model that takes more is refused. 256 MiB by default. */
  maxMemory?: number;
  /** Multiply-adds that one image may take; a model that takes more is refused. 20 billion by default. */
  maxWork?: number;
  /** The inner loops to use: "wasm_simd" (the default) or "portable". Both give the same answers. */
  kernels?: string;
}

export interface RecognizeOptions {
  /** How many labels an answer has at most: 5 by default. */
  top?: number;
}

export interface Guess {
  label: string;
  /** Fitted to how often the model is right. */
  probability: number;
}

/** Tells what a sketch shows. */
export class Recognizer {
  private constructor();

  /** Opens a model. The promise is rejected with one sentence where a file is refused or cannot be read. */
  static load(options: LoadOptions): Promise<Recognizer>;

  /** What it can tell apart, in the order of the logits. */
  readonly labels: readonly string[];
  /** Channels, height and width of what the network sees. */
  readonly inputSize: readonly [channels: number, height: number, width: number];
  /** The inner loops in use. */
  readonly kernels: string;

  /** Returns the likeliest labels, the likeliest first. Pictures may be photographs. */
  recognize(drawing: Strokes | Pixels, options?: RecognizeOptions): Guess[];

  /** Has the browser decode a picture, and recognizes it. */
  recognizeImage(image: ImageBitmapSource, options?: RecognizeOptions): Promise<Guess[]>;

  /** Returns a drawing as the network sees it: ink 1 on 0. */
  draw(drawing: Strokes | Pixels): Float32Array;

  /** Returns the logits of an image, or of several that stand one after the other. */
  run(images: Float32Array): Float32Array;

  /** Gives its memory back at once, and not only when nothing refers to it any more. */
  close(): void;
}
