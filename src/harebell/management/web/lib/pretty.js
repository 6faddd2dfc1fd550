// JSON with line breaks, and every value as it is written: numbers are not read, because a script
// reads 12345678901234567890 as 12345678901234567000, and 1.0 as 1.
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

// The text with line breaks if it is JSON, and as it is if not.
export function pretty(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(TOKENS) ?? [];
  let depth = 0;
  let shown = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  tokens.forEach((token, at) => {
    if (token === "{" || token === "[") {
      depth += 1;
      const next = tokens[at + 1];
      shown += token + (next === "}" || next === "]" ? "" : line());
    } else if (token === "}" || token === "]") {
      depth -= 1;
      const before = tokens[at - 1];
      shown += (before === "{" || before === "[" ? "" : line()) + token;
    } else if (token === ",") shown += token + line();
    else shown += token === ":" ? ": " : token;
  });
  return shown;
}

// How many bytes of a body a text has.
export function bytesOf(text, encoding) {
  if (encoding !== "base64") return new TextEncoder().encode(text).length;
  return Math.floor((text.replace(/=+$/, "").length * 3) / 4);
}

// A number as it is written, where browsers know how; else as text.
const raw = (digits) => (JSON.rawJSON ? JSON.rawJSON(digits) : digits);

// What JSON says, with numbers that a script cannot have as they are written.
export function exact(json) {
  return JSON.parse(json, (_, value, context) =>
    typeof value === "number" && context && String(value) !== context.source
      ? raw(context.source)
      : value,
  );
}
