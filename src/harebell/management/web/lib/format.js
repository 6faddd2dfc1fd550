// Figures as text.
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const FINE = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export const NOTHING = "–";

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

export function count(value) {
  return isNumber(value) ? WHOLE.format(value) : NOTHING;
}

export function rate(value) {
  if (!isNumber(value)) return NOTHING;
  return value >= 100 ? WHOLE.format(value) : SHORT.format(value);
}

export const perSecond = (value) => `${rate(value)}/s`;

export function bytes(value) {
  if (!isNumber(value)) return NOTHING;
  let rest = value;
  let unit = 0;
  while (Math.abs(rest) >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${rest >= 100 || unit === 0 ? WHOLE.format(rest) : SHORT.format(rest)} ${UNITS[unit]}`;
}

export function seconds(value) {
  if (!isNumber(value)) return NOTHING;
  if (value === 0) return "0 s";
  if (value < 0.001) return `${WHOLE.format(value * 1e6)} µs`;
  if (value < 1) return `${FINE.format(value * 1000)} ms`;
  if (value < 120) return `${SHORT.format(value)} s`;
  if (value < 7200) return `${WHOLE.format(value / 60)} min`;
  if (value < 172800) return `${SHORT.format(value / 3600)} h`;
  return `${SHORT.format(value / 86400)} d`;
}

// A time in milliseconds since 1970, as the clock of the reader shows it.
export function dateTime(ms) {
  return isNumber(ms) ? new Date(ms).toLocaleString("en-GB") : NOTHING;
}

// How long ago a time in milliseconds since 1970 was, or how far ahead it is.
export function ago(ms, now = Date.now()) {
  if (!isNumber(ms)) return NOTHING;
  const passed = Math.round((now - ms) / 1000);
  if (Math.abs(passed) < 5) return "now";
  return passed > 0 ? `${seconds(passed)} ago` : `in ${seconds(-passed)}`;
}

export function short(value) {
  if (!isNumber(value)) return NOTHING;
  if (Math.abs(value) >= 1e9) return `${SHORT.format(value / 1e9)} G`;
  if (Math.abs(value) >= 1e6) return `${SHORT.format(value / 1e6)} M`;
  if (Math.abs(value) >= 1e4) return `${SHORT.format(value / 1e3)} k`;
  return SHORT.format(value);
}

export function value(any) {
  return typeof any === "string" ? any : JSON.stringify(any);
}
