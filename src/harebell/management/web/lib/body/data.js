// Bytes of a body, read within limits: what publishers send may lie about its size and depth.

// The most of a body that is unpacked, and the most text that is made of it.
export const UNPACKED_BYTES = 4 * 1024 * 1024;
const TEXT_CHARACTERS = 2 * 1024 * 1024;
const VALUES = 100_000;
const DEPTH = 64;
const UTF8 = new TextDecoder("utf-8", { fatal: true });

// A body as bytes.
export function dataOf(payload, encoding) {
  if (encoding !== "base64") return new TextEncoder().encode(payload);
  return Uint8Array.from(atob(payload), (each) => each.charCodeAt(0));
}

// Bytes as text in UTF-8; null if they are none.
export function textOf(data) {
  try {
    return UTF8.decode(data);
  } catch {
    return null;
  }
}

export function base64(data) {
  let text = "";
  for (let at = 0; at < data.length; at += 8192) {
    text += String.fromCharCode(...data.subarray(at, at + 8192));
  }
  return btoa(text);
}

// A number with a fraction in its format, so that 1 in a double is shown as 1.0.
export class Real {
  constructor(number) {
    this.number = number;
  }

  toString() {
    const { number } = this;
    if (!Number.isFinite(number)) return Number.isNaN(number) ? '"nan"' : `"${number}"`;
    const text = Object.is(number, -0) ? "-0" : String(number);
    return /^-?\d+$/.test(text) ? `${text}.0` : text;
  }
}

// Goes through bytes; each read says where and what is missing.
export class Reader {
  constructor(data, budget = { values: VALUES }) {
    this.data = data;
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    this.at = 0;
    this.depth = 0;
    this.budget = budget;
  }

  get left() {
    return this.data.length - this.at;
  }

  // Count a value, so that a few bytes cannot stand for millions of values.
  spend() {
    this.budget.values -= 1;
    if (this.budget.values < 0) throw new Error(`it has more than ${VALUES} values`);
  }

  nested(read) {
    this.depth += 1;
    if (this.depth > DEPTH) throw new Error(`it is nested deeper than ${DEPTH}`);
    const value = read();
    this.depth -= 1;
    return value;
  }

  skip(size) {
    const from = this.at;
    if (size < 0 || size > this.left) {
      throw new Error(`byte ${from}: ${size} bytes are announced, ${this.left} are there`);
    }
    this.at += Number(size);
    return from;
  }

  take(size) {
    const from = this.skip(size);
    return this.data.subarray(from, this.at);
  }

  text(size) {
    const data = this.take(size);
    return textOf(data) ?? data;
  }

  number(kind, size, little = false) {
    return this.view[`get${kind}`](this.skip(size), little);
  }

  // An unsigned number in groups of seven bits, of at most 64 bits.
  varint() {
    const from = this.at;
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const each = this.number("Uint8", 1);
      value |= BigInt(each & 127) << shift;
      if (each < 128) return BigInt.asUintN(64, value);
    }
    throw new Error(`byte ${from}: a number of more than 64 bits`);
  }

  zigzag() {
    const value = this.varint();
    return (value >> 1n) ^ -(value & 1n);
  }

  // A varint that says a size or a count.
  size() {
    const value = this.varint();
    return value > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : Number(value);
  }
}

// Values as JSON with line breaks: numbers digit by digit, and bytes in base64. Objects are `Map`,
// whose names may be of any type.
export function written(value) {
  let length = 0;
  const parts = [];
  const put = (text) => {
    length += text.length;
    if (length > TEXT_CHARACTERS) throw new Error("as text it is too long to be shown");
    parts.push(text);
  };
  const list = (items, open, close, indent, each) => {
    if (!items.length) return put(open + close);
    items.forEach((item, at) => {
      put(`${at ? "," : open}\n${indent}  `);
      each(item, `${indent}  `);
    });
    return put(`\n${indent}${close}`);
  };
  const write = (each, indent) => {
    if (each instanceof Uint8Array) put(JSON.stringify(`base64:${base64(each)}`));
    else if (Array.isArray(each)) list(each, "[", "]", indent, write);
    else if (each instanceof Map) {
      list([...each], "{", "}", indent, ([name, item], inner) => {
        if (typeof name === "string") put(JSON.stringify(name));
        else write(name, inner);
        put(": ");
        write(item, inner);
      });
    } else put(typeof each === "string" ? JSON.stringify(each) : String(each));
  };
  write(value, "");
  return parts.join("");
}
