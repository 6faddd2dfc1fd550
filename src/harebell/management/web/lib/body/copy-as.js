// A message as a command or a program that publishes it again. What is copied has no password.
import { path } from "../api.js";

export const FORMS = { harebell: "harebell publish", curl: "curl", python: "Python" };
const PROPERTIES = [
  ...["content_type", "content_encoding", "correlation_id", "reply_to", "expiration"],
  ...["message_id", "type", "user_id", "app_id", "priority", "timestamp"],
];
// What a terminal would take as a key, or would show in another order.
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/u;
const ESCAPED = /[\\']|[\p{C}\p{Zl}\p{Zp}]/gu;
const SPECIAL = ["$binary", "$text", "$timestamp", "$decimal", "$double", "$uuid", "$typed"];

// A text as one word of a shell; with letters that no terminal should get, in bash's own form.
export function word(text) {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (!UNSEEN.test(text.replace(/[\n\t]/g, ""))) return `'${text.replaceAll("'", "'\\''")}'`;
  return `$'${text.replace(ESCAPED, (each) =>
    each === "\\" || each === "'"
      ? `\\${each}`
      : `\\U${each.codePointAt(0).toString(16).padStart(8, "0")}`,
  )}'`;
}

function bodyOf(message) {
  const { payload, payload_encoding: encoding } = message;
  return { payload, isText: encoding !== "base64" && !/[\0\p{Cs}]/u.test(payload) };
}

// Whether the command line has no word for a value: its JSON knows no other types.
function isSpecial(value) {
  if (Array.isArray(value)) return value.some(isSpecial);
  if (value === null || typeof value !== "object") return false;
  return Object.entries(value).some(([name, each]) => SPECIAL.includes(name) || isSpecial(each));
}

function given(message) {
  const { headers, ...properties } = message.properties ?? {};
  return { properties, headers: message.kept_headers ?? headers ?? {} };
}

function asHarebell(message, vhost) {
  const { properties, headers } = given(message);
  const url = `amqp://USER:PASSWORD@${location.hostname}/${encodeURIComponent(vhost)}`;
  const words = ["harebell publish", `--url ${word(url)}`];
  words.push(`-e ${word(message.exchange) || "''"}`, `-r ${word(message.routing_key) || "''"}`);
  for (const name of PROPERTIES) {
    const value = properties[name];
    if (value !== undefined) words.push(`--${name.replaceAll("_", "-")} ${word(String(value))}`);
  }
  words.push(properties.delivery_mode === 2 ? "--persistent" : "--transient");
  const left = [];
  for (const [name, value] of Object.entries(headers)) {
    if (isSpecial(value) || name.includes("=") || name.endsWith(":")) left.push(name);
    else if (typeof value === "string") words.push(`-H ${word(`${name}=${value}`)}`);
    else words.push(`-H ${word(`${name}:=${JSON.stringify(value)}`)}`);
  }
  const { payload, isText } = bodyOf(message);
  const note = left.length && `Headers of types that it has no words for: ${left.join(", ")}.`;
  if (isText) return { text: [...words, `-- ${word(payload) || "''"}`].join(" \\\n  "), note };
  words.push("--file -");
  const piped = `printf %s ${word(inBase64(message))} | base64 -d |`;
  return { text: `${piped}\n${words.join(" \\\n  ")}`, note };
}

function inBase64({ payload, payload_encoding: encoding }) {
  if (encoding === "base64") return payload;
  const letters = [...new TextEncoder().encode(payload)].map((each) => String.fromCharCode(each));
  return btoa(letters.join(""));
}

// What the API is sent to publish it.
function request(message) {
  const { properties, headers } = given(message);
  return {
    routing_key: message.routing_key,
    properties: { ...properties, headers },
    payload: message.payload,
    payload_encoding: message.payload_encoding,
  };
}

function asCurl(message, vhost) {
  const where = `api/exchanges/${path(vhost, message.exchange || "amq.default")}/publish`;
  const address = new URL(where, location.href).href;
  const words = ["curl -u USER", "-H content-type:application/json"];
  words.push(`-d ${word(JSON.stringify(request(message)))}`, word(address));
  return { text: words.join(" \\\n  "), note: "curl asks for the password." };
}

// A value as Python writes it.
function python(value, used) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map((each) => python(each, used)).join(", ")}]`;
  if (typeof value !== "object" || JSON.isRawJSON?.(value)) return JSON.stringify(value);
  const entries = Object.entries(value);
  if (entries.length === 1) {
    const [[name, inner]] = entries;
    const write = Object.hasOwn(SPELLED, name) ? SPELLED[name] : null;
    if (write) return write(inner, used);
  }
  return `{${entries.map(([name, each]) => `${quoted(name)}: ${python(each, used)}`).join(", ")}}`;
}

function quoted(text) {
  return JSON.stringify(text).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (each) => {
    return `\\U${each.codePointAt(0).toString(16).padStart(8, "0")}`;
  });
}

function decoded(text, used) {
  used.add("from base64 import b64decode");
  return `b64decode(${quoted(text)})`;
}

const SPELLED = {
  $binary: decoded,
  $text: decoded,
  $table: python,
  $double: (text) => `float(${quoted(text)})`,
  $timestamp: (seconds, used) => {
    used.add("from datetime import UTC, datetime");
    return `datetime.fromtimestamp(${Number(seconds)}, UTC)`;
  },
  $decimal: (digits, used) => {
    used.add("from decimal import Decimal");
    return `Decimal(${quoted(digits)})`;
  },
};

function asPython(message, vhost) {
  const { properties, headers } = given(message);
  const used = new Set(["from harebell.client import blocking"]);
  const { payload, isText } = bodyOf(message);
  const body = isText ? `${quoted(payload)}.encode()` : decoded(inBase64(message), used);
  const lines = [`exchange=${quoted(message.exchange)}`];
  lines.push(`routing_key=${quoted(message.routing_key)}`);
  for (const name of [...PROPERTIES, "delivery_mode"]) {
    const value = properties[name];
    if (value === undefined) continue;
    lines.push(`${name}=${python(name === "timestamp" ? { $timestamp: value } : value, used)}`);
  }
  if (Object.keys(headers).length) lines.push(`headers=${python(headers, used)}`);
  const url = `amqp://USER:PASSWORD@${location.hostname}/${encodeURIComponent(vhost)}`;
  const text = `${[...used].sort().join("\n")}

with blocking.connect(${quoted(url)}) as connection:
    connection.channel().publish(
        ${body},
        ${lines.join(",\n        ")},
    )
`;
  return { text, note: "" };
}

const WRITE = { harebell: asHarebell, curl: asCurl, python: asPython };

// {text, note}: how a message of a vhost is published again.
export function copyAs(form, message, vhost) {
  return WRITE[form](message, vhost);
}

// What the forms for publishing are filled with.
export function editable(message) {
  const { properties, headers } = given(message);
  const { delivery_mode: mode, ...others } = properties;
  return {
    key: message.routing_key,
    mode: mode === 2 ? "2" : "1",
    encoding: message.payload_encoding,
    headers: Object.keys(headers).length ? JSON.stringify(headers, null, 2) : "",
    properties: Object.keys(others).length ? JSON.stringify(others, null, 2) : "",
    body: message.payload,
  };
}
