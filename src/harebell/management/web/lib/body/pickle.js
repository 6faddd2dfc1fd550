// Pickled bodies: what loading would do, line by line. Nothing is loaded, and nothing runs.
import { Reader, textOf } from "./data.js";

const LINES = 5_000;
const SHOWN = 200;
// The name of each operation, and what stands behind it: a size of numbers or text, or lines.
const CODES = new Map(
  `I INT line|J BININT i4|K BININT1 u1|M BININT2 u2|L LONG line|8a LONG1 d1|8b LONG4 d4
  S STRING line|T BINSTRING d4|U SHORT_BINSTRING d1|B BINBYTES d4|C SHORT_BINBYTES d1
  8e BINBYTES8 d8|96 BYTEARRAY8 d8|97 NEXT_BUFFER|98 READONLY_BUFFER|N NONE|88 NEWTRUE
  89 NEWFALSE|V UNICODE line|8c SHORT_BINUNICODE t1|X BINUNICODE t4|8d BINUNICODE8 t8
  F FLOAT line|G BINFLOAT f8|] EMPTY_LIST|a APPEND|e APPENDS|l LIST|) EMPTY_TUPLE|t TUPLE
  85 TUPLE1|86 TUPLE2|87 TUPLE3|} EMPTY_DICT|d DICT|s SETITEM|u SETITEMS|8f EMPTY_SET
  90 ADDITEMS|91 FROZENSET|0 POP|2 DUP|( MARK|1 POP_MARK|g GET line|h BINGET u1
  j LONG_BINGET u4|p PUT line|q BINPUT u1|r LONG_BINPUT u4|94 MEMOIZE|82 EXT1 u1|83 EXT2 u2
  84 EXT4 i4|c GLOBAL lines|93 STACK_GLOBAL|R REDUCE|b BUILD|i INST lines|o OBJ|81 NEWOBJ
  92 NEWOBJ_EX|80 PROTO u1|. STOP|95 FRAME u8|P PERSID line|Q BINPERSID`
    .split(/[|\n]/)
    .map((each) => each.trim().split(" "))
    .map(([code, name, operand = ""]) => [
      code.length === 2 ? Number.parseInt(code, 16) : code.charCodeAt(0),
      { name, operand },
    ]),
);

function line(reader) {
  const end = reader.data.indexOf(10, reader.at);
  if (end < 0) throw new Error(`byte ${reader.at}: a line has no end`);
  const text = new TextDecoder("latin1").decode(reader.take(end - reader.at));
  reader.skip(1);
  return text;
}

function size(reader, width) {
  if (width === "1") return reader.number("Uint8", 1);
  if (width === "4") return reader.number("Uint32", 4, true);
  return Number(reader.number("BigUint64", 8, true));
}

function operandOf(reader, operand) {
  if (operand === "line") return line(reader);
  if (operand === "lines") return `${line(reader)} ${line(reader)}`;
  if (operand === "f8") return reader.number("Float64", 8);
  if (operand === "i4") return reader.number("Int32", 4, true);
  if (operand === "u2") return reader.number("Uint16", 2, true);
  const [kind, width] = operand;
  const found = size(reader, width);
  if (kind === "u") return found;
  const data = reader.take(found);
  if (kind === "t") return textOf(data) ?? data;
  return data;
}

function shownOf(found) {
  if (found instanceof Uint8Array) {
    const text = textOf(found);
    if (text === null || /[\0-\x08\x0e-\x1f]/.test(text)) return `${found.length} bytes`;
    return shownOf(text);
  }
  const text = typeof found === "string" ? JSON.stringify(found) : String(found);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}… (${found.length} characters)` : text;
}

// {text, names}: a line for each operation, and the names in Python that loading would look up.
export function pickled(data) {
  const reader = new Reader(data);
  const rows = [];
  const names = new Set();
  const texts = [];
  const memo = new Map();
  let pushed = null;
  const remember = (key) => pushed !== null && memo.set(key, pushed);
  for (let memoized = 0; ; ) {
    const at = reader.at;
    if (!reader.left) throw new Error(`byte ${at}: it ends without STOP`);
    const code = reader.number("Uint8", 1);
    const known = CODES.get(code);
    if (!known) throw new Error(`byte ${at}: ${code} is no operation of pickle`);
    const { name, operand } = known;
    const found = operand ? operandOf(reader, operand) : undefined;
    if (name === "GLOBAL" || name === "INST") names.add(found.replace(" ", "."));
    if (name === "STACK_GLOBAL") names.add(texts.slice(-2).join("."));
    if (name === "MEMOIZE") remember(memoized++);
    else if (name.endsWith("PUT")) remember(Number(found));
    else if (name !== "FRAME") {
      pushed = name.endsWith("GET") ? (memo.get(Number(found)) ?? null) : null;
      if (operand[0] === "t") pushed = String(found);
      if (pushed !== null) texts.push(pushed);
    }
    if (rows.length < LINES) {
      rows.push(`${String(at).padStart(6)}  ${name}${operand ? ` ${shownOf(found)}` : ""}`);
    } else if (rows.length === LINES) rows.push(`…  the rest, after ${LINES} operations`);
    if (name === "STOP") return { text: rows.join("\n"), names: [...names], end: reader.at };
  }
}
