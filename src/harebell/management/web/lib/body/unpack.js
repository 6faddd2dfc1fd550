// Compressed bodies: no more than a limit of them is unpacked, whatever they say of themselves.
import { UNPACKED_BYTES } from "./data.js";

// Small, so that little is unpacked before it is counted: deflate makes 1,032 bytes of one.
const PIECE_BYTES = 1024;
const WINDOW_BYTES = 8 * 1024 * 1024;
const NAMES = { gzip: "gzip", "x-gzip": "gzip", deflate: "deflate", zlib: "deflate", zstd: "zstd" };

export const COMPRESSIONS = ["gzip", "deflate", "zstd"];

// How a body is compressed, as its publisher or its first bytes say; null if it is not.
export function compressionOf(data, contentEncoding) {
  const named = NAMES[String(contentEncoding ?? "").trim().toLowerCase()];
  if (named) return named;
  const [first, second, third, fourth] = data;
  if (first === 0x1f && second === 0x8b && third === 8) return "gzip";
  if (first === 0x28 && second === 0xb5 && third === 0x2f && fourth === 0xfd) return "zstd";
  if (first === 0x78 && data.length > 6 && ((first << 8) | second) % 31 === 0) return "deflate";
  return null;
}

// Collects pieces up to the limit.
class Gathered {
  constructor() {
    this.pieces = [];
    this.size = 0;
  }

  // False when the limit is reached.
  add(piece) {
    const fits = piece.subarray(0, UNPACKED_BYTES - this.size);
    this.pieces.push(fits.slice());
    this.size += fits.length;
    return fits.length === piece.length;
  }

  data() {
    const all = new Uint8Array(this.size);
    let at = 0;
    for (const piece of this.pieces) {
      all.set(piece, at);
      at += piece.length;
    }
    return all;
  }
}

class Full extends Error {}

async function inflate(data, kind, gathered) {
  const stream = new DecompressionStream(kind);
  const writer = stream.writable.getWriter();
  const reader = stream.readable.getReader();
  const feed = async () => {
    for (let at = 0; at < data.length; at += PIECE_BYTES) {
      await writer.ready;
      await writer.write(data.subarray(at, at + PIECE_BYTES));
    }
    await writer.close();
  };
  const fed = feed();
  // The reader has the same error.
  fed.catch(() => {});
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    if (!gathered.add(value)) {
      reader.cancel().catch(() => {});
      throw new Full();
    }
  }
}

// Refuse a frame that asks for more memory than a browser should give.
function checkFrames(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = 0;
  while (at + 6 <= data.length) {
    const magic = view.getUint32(at, true);
    if (magic >>> 4 === 0x184d2a5) {
      at += at + 8 <= data.length ? 8 + view.getUint32(at + 4, true) : 8;
      continue;
    }
    if (magic !== 0xfd2fb528) return;
    const flags = data[at + 4];
    const single = (flags >> 5) & 1;
    const sizeFlag = flags >> 6;
    const descriptor = data[at + 5];
    at += 6 - single + [0, 1, 2, 4][flags & 3];
    const sizeBytes = sizeFlag ? 1 << sizeFlag : single;
    if (at + sizeBytes > data.length) return;
    let size = 0;
    for (let each = sizeBytes - 1; each >= 0; each -= 1) size = size * 256 + data[at + each];
    const base = 2 ** (10 + (descriptor >> 3));
    const window = single ? size : base + (base / 8) * (descriptor & 7);
    if (window > WINDOW_BYTES) throw new Error("it needs a window of more than 8 MiB");
    at += sizeBytes;
    for (let last = 0; !last && at + 3 <= data.length; ) {
      const header = data[at] | (data[at + 1] << 8) | (data[at + 2] << 16);
      last = header & 1;
      at += 3 + (((header >> 1) & 3) === 1 ? 1 : header >> 3);
    }
    if ((flags >> 2) & 1) at += 4;
  }
}

async function unzstd(data, gathered) {
  checkFrames(data);
  const { Decompress } = await import("fzstd");
  const stream = new Decompress((piece) => {
    if (!gathered.add(piece)) throw new Full();
  });
  stream.push(data, true);
}

// {data, problem}: what a body unpacks to, and why that is not all of it.
export async function unpacked(data, kind) {
  const gathered = new Gathered();
  let problem = null;
  try {
    await (kind === "zstd" ? unzstd(data, gathered) : inflate(data, kind, gathered));
  } catch (error) {
    problem =
      error instanceof Full
        ? `It unpacks to more than ${UNPACKED_BYTES / 1024 / 1024} MiB: the rest is left out.`
        : `As ${kind} it cannot be unpacked${gathered.size ? " further" : ""}: ${error.message}.`;
  }
  return { data: gathered.data(), problem };
}
