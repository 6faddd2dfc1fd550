// Protobuf: https://protobuf.dev/programming-guides/encoding/ with a schema as a .proto file, or
// without one, by the numbers of its fields.
import { Reader, Real, textOf } from "./data.js";

const VARINT = 0;
const FIXED64 = 1;
const SIZED = 2;
const GROUP = 3;
const END = 4;
const FIXED32 = 5;
const SCALARS = {
  int32: [VARINT, (reader) => BigInt.asIntN(32, reader.varint())],
  int64: [VARINT, (reader) => BigInt.asIntN(64, reader.varint())],
  uint32: [VARINT, (reader) => BigInt.asUintN(32, reader.varint())],
  uint64: [VARINT, (reader) => reader.varint()],
  sint32: [VARINT, (reader) => reader.zigzag()],
  sint64: [VARINT, (reader) => reader.zigzag()],
  bool: [VARINT, (reader) => reader.varint() !== 0n],
  fixed32: [FIXED32, (reader) => reader.number("Uint32", 4, true)],
  sfixed32: [FIXED32, (reader) => reader.number("Int32", 4, true)],
  float: [FIXED32, (reader) => new Real(reader.number("Float32", 4, true))],
  fixed64: [FIXED64, (reader) => reader.number("BigUint64", 8, true)],
  sfixed64: [FIXED64, (reader) => reader.number("BigInt64", 8, true)],
  double: [FIXED64, (reader) => new Real(reader.number("Float64", 8, true))],
  string: [SIZED, (reader) => reader.text(reader.size())],
  bytes: [SIZED, (reader) => reader.take(reader.size())],
};

// --- a .proto file -------------------------------------------------------------------------------

const TOKENS =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[\w.]+|[^\s\w]/g;

class Parser {
  constructor(text) {
    this.tokens = (text.match(TOKENS) ?? []).filter((each) => !/^\/[/*]/.test(each));
    this.at = 0;
    this.messages = new Map();
    // Those of the file, in its order; each has its own in `inner`.
    this.inner = [];
    this.enums = new Map();
  }

  get next() {
    return this.tokens[this.at];
  }

  take(expected) {
    const token = this.tokens[this.at];
    if (token === undefined) throw new Error("the schema ends too early");
    if (expected !== undefined && token !== expected) {
      throw new Error(`the schema has '${token}' where '${expected}' was expected`);
    }
    this.at += 1;
    return token;
  }

  // Pass a statement that says nothing about the data, such as an option.
  pass() {
    for (let depth = 0; ; ) {
      const token = this.take();
      if (token === "{") depth += 1;
      else if (token === "}") depth -= 1;
      if (depth <= 0 && (token === ";" || token === "}")) return;
    }
  }

  file() {
    let space = "";
    while (this.next !== undefined) {
      if (this.next === "package") {
        this.take();
        space = this.take();
        this.take(";");
      } else if (this.next === "message") this.message(space, this.inner, 0);
      else if (this.next === "enum") this.enumeration(space);
      else if (this.next === ";") this.take();
      else this.pass();
    }
    return this;
  }

  message(space, siblings, depth) {
    if (depth > 32) throw new Error("the schema is nested deeper than 32");
    this.take("message");
    const name = space ? `${space}.${this.take()}` : this.take();
    const message = { name, fields: new Map(), inner: [] };
    this.messages.set(name, message);
    siblings.push(message);
    this.take("{");
    this.members(message, depth);
  }

  members(message, depth) {
    const { name, fields, inner } = message;
    while (this.next !== "}") {
      if (this.next === "message") this.message(name, inner, depth + 1);
      else if (this.next === "enum") this.enumeration(name);
      else if (this.next === "oneof") {
        this.take();
        this.take();
        this.take("{");
        this.members(message, depth);
      } else if (this.next === ";") this.take();
      else if (["option", "reserved", "extensions", "extend"].includes(this.next)) this.pass();
      else this.field(name, fields);
    }
    this.take("}");
  }

  field(space, fields) {
    let label = "";
    if (["repeated", "optional", "required"].includes(this.next)) label = this.take();
    let type = this.take();
    let entry = null;
    if (type === "map" && this.next === "<") {
      this.take("<");
      const key = this.take();
      this.take(",");
      entry = { key, value: this.take() };
      this.take(">");
    } else if (type === "." || type === "group") throw new Error(`'${type}' is not supported`);
    const name = this.take();
    this.take("=");
    const number = Number(this.take());
    if (this.next === ";") this.take();
    else this.pass();
    if (type.startsWith(".")) type = type.slice(1);
    fields.set(number, { name, type, space, repeated: label === "repeated", entry });
  }

  enumeration(space) {
    this.take("enum");
    const name = space ? `${space}.${this.take()}` : this.take();
    const values = new Map();
    this.enums.set(name, values);
    this.take("{");
    while (this.next !== "}") {
      if (["option", "reserved", ";"].includes(this.next)) {
        this.pass();
        continue;
      }
      const symbol = this.take();
      this.take("=");
      const minus = this.next === "-" ? this.take() : "";
      values.set(BigInt(`${minus}${Number(this.take())}`), symbol);
      if (this.next === ";") this.take();
      else this.pass();
    }
    this.take("}");
  }

  // A type by its name, from the innermost message outwards.
  find(table, name, space) {
    for (let from = space; ; ) {
      const found = table.get(from ? `${from}.${name}` : name);
      if (found || !from) return found;
      from = from.includes(".") ? from.slice(0, from.lastIndexOf(".")) : "";
    }
  }
}

// The messages of a .proto file, and of those that it imports: `references`, as [{schema}].
function protoFile(text, references = []) {
  const file = new Parser(text).file();
  if (!file.messages.size) throw new Error("the schema has no message");
  for (const { schema } of references) {
    const { messages, enums } = new Parser(schema).file();
    file.messages = new Map([...messages, ...file.messages]);
    file.enums = new Map([...enums, ...file.enums]);
  }
  return file;
}

// --- bodies --------------------------------------------------------------------------------------

function byType(schema, type, space) {
  if (Object.hasOwn(SCALARS, type)) return SCALARS[type];
  const message = schema.find(schema.messages, type, space);
  if (message) {
    return [SIZED, (reader) => sized(reader, (inner) => byMessage(inner, schema, message))];
  }
  const symbols = schema.find(schema.enums, type, space);
  if (!symbols) throw new Error(`the schema has no type '${type}'`);
  return [
    VARINT,
    (reader) => {
      const number = BigInt.asIntN(32, reader.varint());
      return symbols.get(number) ?? number;
    },
  ];
}

function sized(reader, read) {
  const inner = new Reader(reader.take(reader.size()), reader.budget);
  inner.depth = reader.depth;
  return inner.nested(() => read(inner));
}

function entryOf(reader, schema, field) {
  const pair = new Map([
    [1, { name: "key", type: field.entry.key, space: field.space }],
    [2, { name: "value", type: field.entry.value, space: field.space }],
  ]);
  const entry = { name: field.name, fields: pair };
  const found = sized(reader, (inner) => byMessage(inner, schema, entry));
  return [found.get("key") ?? null, found.get("value") ?? null];
}

function byMessage(reader, schema, message) {
  const found = new Map();
  while (reader.left) {
    reader.spend();
    const tag = reader.size();
    const number = Math.floor(tag / 8);
    const wire = tag % 8;
    const field = message.fields.get(number);
    if (!field) {
      add(found, `field ${number}`, unknown(reader, wire, number));
      continue;
    }
    try {
      if (field.entry) {
        if (!found.has(field.name)) found.set(field.name, new Map());
        found.get(field.name).set(...entryOf(reader, schema, field));
        continue;
      }
      const [expected, read] = byType(schema, field.type, field.space);
      if (wire === SIZED && expected !== SIZED) {
        const items = listOf(found, field.name);
        sized(reader, (inner) => {
          while (inner.left) {
            inner.spend();
            items.push(read(inner));
          }
        });
      } else if (wire !== expected) throw new Error("the data has another type");
      else if (field.repeated) listOf(found, field.name).push(read(reader));
      else found.set(field.name, read(reader));
    } catch (error) {
      throw error.named
        ? error
        : Object.assign(error, {
            named: true,
            message: `field '${field.name}' of '${message.name}': ${error.message}`,
          });
    }
  }
  return found;
}

function listOf(found, name) {
  if (!Array.isArray(found.get(name))) found.set(name, []);
  return found.get(name);
}

// Keep all values of a number that comes several times.
function add(found, name, value) {
  if (!found.has(name)) found.set(name, value);
  else if (found.get(name) instanceof Several) found.get(name).push(value);
  else found.set(name, Several.of(found.get(name), value));
}

class Several extends Array {}

function unknown(reader, wire, number) {
  if (wire === VARINT) return reader.varint();
  if (wire === FIXED64) return reader.number("BigUint64", 8, true);
  if (wire === FIXED32) return reader.number("Uint32", 4, true);
  if (wire === GROUP) return reader.nested(() => byNumbers(reader, number));
  if (wire !== SIZED) throw new Error(`byte ${reader.at}: ${wire} is no type`);
  const data = reader.take(reader.size());
  return guessed(data, reader);
}

// Text, another message, or bytes: the data does not say which.
function guessed(data, reader) {
  const text = textOf(data);
  if (text !== null && !/[\0-\x08\x0e-\x1f]/.test(text)) return text;
  try {
    const inner = new Reader(data, reader.budget);
    inner.depth = reader.depth;
    return inner.nested(() => byNumbers(inner));
  } catch {
    return data;
  }
}

function byNumbers(reader, group = null) {
  const found = new Map();
  while (reader.left) {
    reader.spend();
    const from = reader.at;
    const tag = reader.size();
    const number = Math.floor(tag / 8);
    if (number === 0) throw new Error(`byte ${from}: there is no field 0`);
    if (tag % 8 === END) {
      if (number === group) return found;
      throw new Error(`byte ${from}: a group ends that did not begin`);
    }
    add(found, `field ${number}`, unknown(reader, tag % 8, number));
  }
  if (group !== null) throw new Error("a group has no end");
  return found;
}

// What a registry's client wrote before the data: where the data begins, and the path of its
// message, which is its index in the file, and in the message around it; null without it.
function prefixOf(data) {
  if (data[0] !== 0 || data.length < 6) return { start: 0, path: null };
  const reader = new Reader(data);
  reader.skip(5);
  const count = Number(reader.zigzag());
  const path = [];
  while (path.length < count && reader.left) path.push(Number(reader.zigzag()));
  return { start: reader.at, path: path.length ? path : [0] };
}

function byPath(schema, path) {
  let found = schema;
  path.forEach((index, depth) => {
    found = found.inner[index];
    const place = path.slice(0, depth + 1).join(".");
    if (!found) throw new Error(`the schema has no message ${place}, which the body names`);
  });
  return found;
}

function byName(schema, name) {
  const found =
    schema.messages.get(name) ??
    [...schema.messages.values()].find((each) => each.name.endsWith(`.${name}`));
  if (found) return found;
  const names = [...schema.messages.keys()].slice(0, 10).join(", ");
  throw new Error(`the schema has no message '${name}': it has ${names}`);
}

// What a body has; `type` names its message, else the body does, or it is the first of the schema.
export function protobuf(data, text, type, references) {
  const { start, path } = prefixOf(data);
  const reader = new Reader(data.subarray(start));
  if (!text) return byNumbers(reader);
  const schema = protoFile(text, references);
  return byMessage(reader, schema, type ? byName(schema, type) : byPath(schema, path ?? [0]));
}
