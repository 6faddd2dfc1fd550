// The views of a body: which there are, which suits it, and what each shows.
import { pretty } from "../pretty.js";
import { registered } from "../registry.js";
import { avro, avroFile, framing, isAvroFile } from "./avro.js";
import { dataOf, textOf, written } from "./data.js";
import { hex } from "./hex.js";
import { msgpack } from "./msgpack.js";
import { pickled } from "./pickle.js";
import { protobuf } from "./protobuf.js";
import { COMPRESSIONS, compressionOf, unpacked } from "./unpack.js";

export { COMPRESSIONS };

export const VIEWS = {
  json: "JSON",
  text: "text",
  msgpack: "MessagePack",
  avro: "Avro",
  protobuf: "Protobuf",
  pickle: "pickle",
  hex: "hex",
};

// All that the Encoding Standard has: each browser knows them.
export const CHARSETS = (
  "utf-8 utf-16le utf-16be windows-1252 ibm866 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 " +
  "iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-8-i iso-8859-10 iso-8859-13 iso-8859-14 " +
  "iso-8859-15 iso-8859-16 koi8-r koi8-u macintosh windows-874 windows-1250 windows-1251 " +
  "windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258 " +
  "x-mac-cyrillic gbk gb18030 big5 euc-jp iso-2022-jp shift_jis euc-kr"
).split(" ");

const TYPES = [
  [/msgpack|messagepack/, "msgpack"],
  [/x-python-serialize|pickle/, "pickle"],
  [/avro/, "avro"],
  [/protobuf|x-proto\b/, "protobuf"],
  [/[/+]json/, "json"],
  [/^text\//, "text"],
];
// The views of what a registry's client wrote, by the type of its schema.
const REGISTERED = { AVRO: "avro", PROTOBUF: "protobuf", JSON: "json" };
// The bytes of the id before it.
const PREFIX = 5;
// Letters that text does not have, but for those that break lines.
const CONTROL = /[\0-\x08\x0e-\x1a\x1c-\x1f]/;

// The charset that a content type names; null if it names none that browsers know.
function charsetOf(contentType) {
  const named = /charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  try {
    return named ? new TextDecoder(named).encoding : null;
  } catch {
    return null;
  }
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function reads(read, data) {
  try {
    return read(data);
  } catch {
    return undefined;
  }
}

// The view that suits a body: what its content type says, or else what its bytes are.
function viewOf(data, contentType, schema) {
  if (isAvroFile(data)) return "avro";
  const named = TYPES.find(([pattern]) => pattern.test(contentType))?.[1];
  if (named && named !== "text") return named;
  const text = textOf(data);
  if (text !== null && isJson(text)) return "json";
  if (named) return named;
  if (schema.avro && reads((each) => avro(each, schema.avro), data) !== undefined) return "avro";
  if (schema.proto) return "protobuf";
  const found = reads(pickled, data);
  const isWhole = found !== undefined && found.end === data.length;
  if (isWhole && (found.names.length || data[0] === 0x80)) return "pickle";
  if (text !== null && !CONTROL.test(text)) return "text";
  const value = reads(msgpack, data);
  return value instanceof Map || (Array.isArray(value) && data[0] > 0x8f) ? "msgpack" : "hex";
}

function asText(data, charset) {
  const text = new TextDecoder(charset).decode(data);
  const wrong = text.split("\ufffd").length - 1;
  return { text, note: wrong ? `In ${charset}, ${wrong} parts of it are no text.` : null };
}

function asPickle(data) {
  const { text, names } = pickled(data);
  const called = names.length ? `Loading it would look up ${names.join(", ")}. ` : "";
  return { text, note: `${called}This page only reads its operations: it loads and runs nothing.` };
}

async function asAvro(data, schema) {
  if (isAvroFile(data)) {
    const { value } = await avroFile(data);
    return { text: written(value), note: `A file with ${value.length} values, and its schema.` };
  }
  const { says } = framing(data);
  const note = says ? `It names its schema: ${says}.` : null;
  if (!schema.avro) {
    return { text: hex(data), note, problem: "Avro needs the schema: give it below." };
  }
  return { text: written(avro(data, schema.avro, schema.references)), note };
}

function asProtobuf(data, { proto, type, references }) {
  const note = proto ? null : "Without a schema, fields have numbers. Give it below.";
  return { text: written(protobuf(data, proto, type, references)), note };
}

function shown(view, data, { charset, schema }) {
  if (view === "hex") return { text: hex(data) };
  if (view === "pickle") return asPickle(data);
  if (view === "msgpack") return { text: written(msgpack(data)) };
  if (view === "avro") return asAvro(data, schema);
  if (view === "protobuf") return asProtobuf(data, schema);
  const decoded = asText(data, charset);
  if (view === "json") {
    // Too long a text is not broken into lines.
    if (!isJson(decoded.text)) return { ...decoded, problem: "It is not JSON." };
    return { ...decoded, text: pretty(decoded.text) };
  }
  return decoded;
}

// {view, compression, charset, text, note, problem}: what a message's body looks like. What `asked`
// leaves out ("" or undefined) is chosen by what the message and its bytes say.
export async function look(message, asked = {}) {
  const { content_type: type, content_encoding: packing } = message.properties ?? {};
  const contentType = String(type ?? "").toLowerCase();
  let schema = asked.schema ?? {};
  let data = dataOf(message.payload, message.payload_encoding);
  const compression = asked.compression || compressionOf(data, packing) || "none";
  let unpacking = null;
  if (compression !== "none") {
    const found = await unpacked(data, compression);
    unpacking = found.problem;
    // What cannot be unpacked at all is shown as it is.
    if (found.data.length || !found.problem) data = found.data;
  }
  // A schema that was given by hand stands before that of the registry.
  const own = schema.avro || schema.proto ? null : await registered(data);
  const references = own?.references;
  if (own?.type === "AVRO") schema = { ...schema, avro: own.schema, references };
  if (own?.type === "PROTOBUF") schema = { ...schema, proto: own.schema, references };
  if (own?.type === "JSON") data = data.subarray(PREFIX);
  const charset = asked.charset || charsetOf(contentType) || "utf-8";
  const view = asked.view || REGISTERED[own?.type] || viewOf(data, contentType, schema);
  let found;
  try {
    found = await shown(view, data, { charset, schema });
  } catch (error) {
    const told = `As ${VIEWS[view]} it cannot be read: ${error.message}.`;
    found = { text: hex(data), problem: told };
  }
  const problems = [unpacking, own?.problem && `${own.problem}.`, found.problem];
  const problem = problems.filter(Boolean).join(" ") || null;
  return { view, compression, charset, size: data.length, note: null, ...found, problem };
}
