// What differs between two texts, by lines.

// Products of numbers of lines above this are not compared line by line.
const COMPARED = 250000;

// [{mark, text}]: mark is " " for a line of both, "-" for one of the first, "+" for one of the
// second.
export function differences(first, second) {
  const a = first.split("\n");
  const b = second.split("\n");
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (
    end < Math.min(a.length, b.length) - start &&
    a[a.length - 1 - end] === b[b.length - 1 - end]
  ) {
    end += 1;
  }
  const same = (lines) => lines.map((text) => ({ mark: " ", text }));
  const middle = between(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return [...same(a.slice(0, start)), ...middle, ...same(a.slice(a.length - end))];
}

function between(a, b) {
  const only = (mark, lines) => lines.map((text) => ({ mark, text }));
  if (a.length * b.length > COMPARED) return [...only("-", a), ...only("+", b)];
  // longest[i][j]: how many lines of a from i on and of b from j on can be paired.
  const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i][j] =
        a[i] === b[j]
          ? longest[i + 1][j + 1] + 1
          : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const found = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      found.push({ mark: " ", text: a[i] });
      i += 1;
      j += 1;
    } else if (j === b.length || (i < a.length && longest[i + 1][j] >= longest[i][j + 1])) {
      found.push({ mark: "-", text: a[i] });
      i += 1;
    } else {
      found.push({ mark: "+", text: b[j] });
      j += 1;
    }
  }
  return found;
}
