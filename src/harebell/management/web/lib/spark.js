// A line without axes of the last samples of a level, and a name that is cut in its middle.
import { html } from "./html.js";

const WIDTH = 72;
const HEIGHT = 20;
const NAME_LETTERS = 40;
const TAIL_LETTERS = 14;

export function Spark({ samples }) {
  if (!samples || samples.length < 2) return null;
  const values = samples.map(({ sample }) => sample).reverse();
  const most = Math.max(1, ...values);
  const step = WIDTH / (values.length - 1);
  const height = (value) => HEIGHT - 1 - (value / most) * (HEIGHT - 2);
  const points = values
    .map((value, at) => `${(at * step).toFixed(1)},${height(value).toFixed(1)}`)
    .join(" ");
  return html`<svg class="spark" width=${WIDTH} height=${HEIGHT}
    viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true"><polyline points=${points} /></svg>`;
}

// A link with a name. Of a long one the middle is not seen: names of one kind differ at their ends.
// The whole name is in the tooltip, in what a screen reader says, and in what is copied.
export function NameLink({ href, name }) {
  const letters = [...name];
  if (letters.length <= NAME_LETTERS) return html`<a href=${href}>${name}</a>`;
  const head = letters.slice(0, NAME_LETTERS - TAIL_LETTERS).join("");
  const middle = letters.slice(NAME_LETTERS - TAIL_LETTERS, -TAIL_LETTERS).join("");
  return html`<a href=${href} title=${name}>${head}<span class="left-out">${middle}</span
    >${letters.slice(-TAIL_LETTERS).join("")}</a>`;
}
