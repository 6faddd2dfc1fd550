// Bytes as a dump: offset, sixteen bytes, and what of them is ASCII.
const ROW_BYTES = 16;
const LAST = 64 * 1024;

export function hex(data) {
  const rows = [];
  for (let at = 0; at < Math.min(data.length, LAST); at += ROW_BYTES) {
    const row = [...data.subarray(at, at + ROW_BYTES)];
    const codes = row.map((each) => each.toString(16).padStart(2, "0"));
    const letters = row.map((each) => (each > 31 && each < 127 ? String.fromCharCode(each) : "."));
    rows.push(
      `${at.toString(16).padStart(8, "0")}  ${codes.slice(0, 8).join(" ").padEnd(23)}  ` +
        `${codes.slice(8).join(" ").padEnd(23)}  ${letters.join("")}`,
    );
  }
  if (data.length > LAST) rows.push(`…  the first ${LAST} bytes; a download has all`);
  return rows.join("\n");
}
