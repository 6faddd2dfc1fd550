// MessagePack: https://github.com/msgpack/msgpack/blob/master/spec.md
import { Reader, Real } from "./data.js";

function list(reader, count) {
  return reader.nested(() => {
    const items = [];
    for (let at = 0; at < count; at += 1) items.push(value(reader));
    return items;
  });
}

function map(reader, count) {
  return reader.nested(() => {
    const entries = [];
    for (let at = 0; at < count; at += 1) entries.push([value(reader), value(reader)]);
    // Of names that are not text, and of equal names, each is shown.
    const plain = new Map(entries);
    return plain.size === count ? plain : entries;
  });
}

function extension(reader, size) {
  const kind = reader.number("Int8", 1);
  const data = reader.take(size);
  const inner = new Reader(data, reader.budget);
  if (kind === -1 && size === 4) return time(BigInt(inner.number("Uint32", 4)), 0);
  if (kind === -1 && size === 8) {
    const both = inner.number("BigUint64", 8);
    return time(both & 0x3ffffffffn, Number(both >> 34n));
  }
  if (kind === -1 && size === 12) {
    const nanoseconds = inner.number("Uint32", 4);
    return time(inner.number("BigInt64", 8), nanoseconds);
  }
  return new Map([
    ["extension", kind],
    ["data", data],
  ]);
}

function time(seconds, nanoseconds) {
  const date = new Date(Number(seconds) * 1000);
  if (Number.isNaN(date.getTime())) return `${seconds} seconds since 1970`;
  const fraction = nanoseconds ? `.${String(nanoseconds).padStart(9, "0")}` : "";
  return `${date.toISOString().slice(0, -5)}${fraction}Z`;
}

const READ = {
  0xc0: () => null,
  0xc2: () => false,
  0xc3: () => true,
  0xc4: (reader) => reader.take(reader.number("Uint8", 1)),
  0xc5: (reader) => reader.take(reader.number("Uint16", 2)),
  0xc6: (reader) => reader.take(reader.number("Uint32", 4)),
  0xc7: (reader) => extension(reader, reader.number("Uint8", 1)),
  0xc8: (reader) => extension(reader, reader.number("Uint16", 2)),
  0xc9: (reader) => extension(reader, reader.number("Uint32", 4)),
  0xca: (reader) => new Real(reader.number("Float32", 4)),
  0xcb: (reader) => new Real(reader.number("Float64", 8)),
  0xcc: (reader) => reader.number("Uint8", 1),
  0xcd: (reader) => reader.number("Uint16", 2),
  0xce: (reader) => reader.number("Uint32", 4),
  0xcf: (reader) => reader.number("BigUint64", 8),
  0xd0: (reader) => reader.number("Int8", 1),
  0xd1: (reader) => reader.number("Int16", 2),
  0xd2: (reader) => reader.number("Int32", 4),
  0xd3: (reader) => reader.number("BigInt64", 8),
  0xd4: (reader) => extension(reader, 1),
  0xd5: (reader) => extension(reader, 2),
  0xd6: (reader) => extension(reader, 4),
  0xd7: (reader) => extension(reader, 8),
  0xd8: (reader) => extension(reader, 16),
  0xd9: (reader) => reader.text(reader.number("Uint8", 1)),
  0xda: (reader) => reader.text(reader.number("Uint16", 2)),
  0xdb: (reader) => reader.text(reader.number("Uint32", 4)),
  0xdc: (reader) => list(reader, reader.number("Uint16", 2)),
  0xdd: (reader) => list(reader, reader.number("Uint32", 4)),
  0xde: (reader) => map(reader, reader.number("Uint16", 2)),
  0xdf: (reader) => map(reader, reader.number("Uint32", 4)),
};

function value(reader) {
  reader.spend();
  const from = reader.at;
  const tag = reader.number("Uint8", 1);
  if (tag < 0x80) return tag;
  if (tag < 0x90) return map(reader, tag & 15);
  if (tag < 0xa0) return list(reader, tag & 15);
  if (tag < 0xc0) return reader.text(tag & 31);
  if (tag >= 0xe0) return tag - 256;
  const read = READ[tag];
  if (!read) throw new Error(`byte ${from}: 0xc1 is no type`);
  return read(reader);
}

// What a body has; several values one behind the other are a list.
export function msgpack(data) {
  const reader = new Reader(data);
  const found = [];
  while (reader.left) found.push(value(reader));
  return found.length === 1 ? found[0] : found;
}
