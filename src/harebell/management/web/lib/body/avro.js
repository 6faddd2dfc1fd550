// Avro with its schema: https://avro.apache.org/docs/1.12.0/specification/
import { Reader, Real } from "./data.js";
import { unpacked } from "./unpack.js";

const SIMPLE = {
  null: () => null,
  boolean: (reader) => reader.number("Uint8", 1) !== 0,
  int: (reader) => reader.zigzag(),
  long: (reader) => reader.zigzag(),
  float: (reader) => new Real(reader.number("Float32", 4, true)),
  double: (reader) => new Real(reader.number("Float64", 8, true)),
  bytes: (reader) => reader.take(sizeOf(reader)),
  string: (reader) => reader.text(sizeOf(reader)),
};
const OBJECT = [0x4f, 0x62, 0x6a, 1];
const CODECS = { deflate: "deflate-raw", zstandard: "zstd" };

function sizeOf(reader) {
  const size = reader.zigzag();
  // A negative size would read what was read already.
  return size < 0n ? Number.MAX_SAFE_INTEGER : Number(size);
}

// Items in blocks, each with their number in front; an empty one is the last.
function blocks(reader, each) {
  reader.nested(() => {
    for (let count = reader.zigzag(); count !== 0n; count = reader.zigzag()) {
      if (count < 0n) {
        reader.zigzag();
        count = -count;
      }
      for (let at = 0n; at < count; at += 1n) {
        // Some take no bytes at all.
        reader.spend();
        each();
      }
    }
  });
}

// A schema as functions that read: named types are found when they are used, also in themselves.
function compile(schema, names, space, depth = 0) {
  if (depth > 64) throw new Error("the schema is nested deeper than 64");
  if (typeof schema === "string") {
    if (Object.hasOwn(SIMPLE, schema)) return SIMPLE[schema];
    return (reader) => {
      const read = names.get(full(schema, space)) ?? names.get(schema);
      if (!read) throw new Error(`the schema has no type '${schema}'`);
      return reader.nested(() => read(reader));
    };
  }
  if (Array.isArray(schema)) return union(schema, names, space, depth);
  const kind = schema?.type;
  if (["record", "error", "enum", "fixed"].includes(kind)) {
    return named(schema, names, space, depth);
  }
  if (kind === "array") {
    const item = compile(schema.items, names, space, depth + 1);
    return (reader) => {
      const items = [];
      blocks(reader, () => items.push(item(reader)));
      return items;
    };
  }
  if (kind === "map") {
    const item = compile(schema.values, names, space, depth + 1);
    return (reader) => {
      const entries = new Map();
      blocks(reader, () => entries.set(SIMPLE.string(reader), item(reader)));
      return entries;
    };
  }
  if (kind === undefined) throw new Error("a part of the schema has no type");
  return logical(schema, compile(kind, names, space, depth + 1));
}

function full(name, space) {
  return name.includes(".") || !space ? name : `${space}.${name}`;
}

function union(branches, names, space, depth) {
  const reads = branches.map((each) => compile(each, names, space, depth + 1));
  return (reader) => {
    const from = reader.at;
    const branch = reads[Number(reader.zigzag())];
    if (!branch) throw new Error(`byte ${from}: the union has no such branch`);
    return branch(reader);
  };
}

function named(schema, names, space, depth) {
  if (typeof schema.name !== "string") throw new Error(`a ${schema.type} has no name`);
  const name = full(schema.name, schema.namespace ?? space);
  const inner = name.includes(".") ? name.slice(0, name.lastIndexOf(".")) : "";
  let read;
  names.set(name, (reader) => read(reader));
  if (schema.type === "fixed") {
    read = logical(schema, (reader) => reader.take(Number(schema.size)));
  } else if (schema.type === "enum") {
    read = (reader) => {
      const from = reader.at;
      const symbol = schema.symbols?.[Number(reader.zigzag())];
      if (symbol === undefined) throw new Error(`byte ${from}: '${name}' has no such symbol`);
      return symbol;
    };
  } else {
    if (!Array.isArray(schema.fields)) throw new Error(`record '${name}' has no fields`);
    const fields = schema.fields.map((each) => [
      String(each.name),
      compile(each.type, names, inner, depth + 1),
    ]);
    read = (reader) => {
      reader.spend();
      return reader.nested(
        () =>
          new Map(
            fields.map(([field, item]) => {
              try {
                return [field, item(reader)];
              } catch (error) {
                throw error.named ? error : Object.assign(error, {
                  named: true, message: `field '${field}' of '${name}': ${error.message}`,
                });
              }
            }),
          ),
      );
    };
  }
  return read;
}

const DAY_MS = 86_400_000;

function moment(ms) {
  const date = new Date(Number(ms));
  return Number.isNaN(date.getTime()) ? ms : date.toISOString();
}

const LOGICAL = {
  date: (days) => String(moment(Number(days) * DAY_MS)).slice(0, 10),
  "timestamp-millis": moment,
  "timestamp-micros": (micros) => moment(micros / 1000n),
  decimal: (data, { scale = 0 }) => {
    let value = 0n;
    for (const each of data) value = (value << 8n) | BigInt(each);
    value = BigInt.asIntN(data.length * 8, value);
    if (!scale) return value;
    const digits = String(value < 0n ? -value : value).padStart(Number(scale) + 1, "0");
    return `${value < 0n ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
  },
};

function logical(schema, read) {
  const shown = Object.hasOwn(LOGICAL, schema.logicalType ?? "")
    ? LOGICAL[schema.logicalType]
    : null;
  if (!shown) return read;
  const isBytes = schema.logicalType === "decimal";
  return (reader) => {
    const value = read(reader);
    const isSmall = value instanceof Uint8Array && value.length <= 64;
    const fits = isBytes ? isSmall : typeof value === "bigint";
    return fits ? shown(value, schema) : value;
  };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    // A type that stands alone is often written without quotes.
    if (Object.hasOwn(SIMPLE, text.trim())) return text.trim();
    throw new Error(`the schema is not JSON: ${error.message}`);
  }
}

// `references`: [{schema}], whose types the schema uses by their names.
function avroSchema(text, references = []) {
  const names = new Map();
  for (const { schema } of references) compile(parsed(schema), names, "");
  return compile(parsed(text), names, "");
}

// Where the data begins: behind the mark of a registry (Confluent's), or of a single object.
export function framing(data) {
  if (data[0] === 0 && data.length >= 5) {
    const id = new DataView(data.buffer, data.byteOffset).getUint32(1);
    return { start: 5, says: `schema ${id} of a registry` };
  }
  if (data[0] === 0xc3 && data[1] === 1 && data.length >= 10) {
    const mark = [...data.subarray(2, 10)].map((each) => each.toString(16).padStart(2, "0"));
    return { start: 10, says: `schema with the fingerprint ${mark.join("")}` };
  }
  return { start: 0, says: null };
}

export function isAvroFile(data) {
  return OBJECT.every((each, at) => data[at] === each);
}

// What a body has by a schema. It has to be read to its end: a wrong schema seldom is.
export function avro(data, schema, references) {
  const read = avroSchema(schema, references);
  const { start } = framing(data);
  const starts = start ? [start, 0] : [0];
  let problem = null;
  for (const each of starts) {
    try {
      const reader = new Reader(data.subarray(each));
      const value = read(reader);
      if (reader.left) throw new Error(`${reader.left} bytes are left behind what the schema says`);
      return value;
    } catch (error) {
      problem ??= error;
    }
  }
  throw problem;
}

// An Avro file has its schema itself.
export async function avroFile(data) {
  const reader = new Reader(data.subarray(OBJECT.length));
  const meta = new Map();
  blocks(reader, () => meta.set(SIMPLE.string(reader), SIMPLE.bytes(reader)));
  const text = (name) => new TextDecoder().decode(meta.get(name) ?? new Uint8Array());
  const read = avroSchema(text("avro.schema"));
  const codec = text("avro.codec") || "null";
  if (codec !== "null" && !Object.hasOwn(CODECS, codec)) {
    throw new Error(`its codec '${codec}' is not known here`);
  }
  const mark = reader.take(16).join();
  const rows = [];
  while (reader.left) {
    const count = sizeOf(reader);
    let block = reader.take(sizeOf(reader));
    if (reader.take(16).join() !== mark) throw new Error(`byte ${reader.at}: a block has no end`);
    if (codec !== "null") {
      const found = await unpacked(block, CODECS[codec]);
      if (found.problem) throw new Error(found.problem);
      block = found.data;
    }
    const inner = new Reader(block, reader.budget);
    for (let at = 0; at < count; at += 1) {
      reader.spend();
      rows.push(read(inner));
    }
  }
  return { value: rows, schema: text("avro.schema") };
}
