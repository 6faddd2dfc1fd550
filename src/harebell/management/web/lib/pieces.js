// Small parts that all pages are made of.
import { html } from "./html.js";
import { NOTHING, ago, dateTime, value } from "./format.js";

const ICON = new URL("../icon.svg", import.meta.url).href;

// What went wrong, in the place where it did.
export function Problem({ error, onRetry }) {
  if (!error) return null;
  return html`<p class="problem" role="alert">${error.message}
    ${
      onRetry &&
      html` <button type="button" class="quiet"
      onClick=${onRetry}>Try again</button>`
    }</p>`;
}

// Figures in a row: [[label, text], ...].
export function Tiles({ of }) {
  return html`<dl class="tiles">
    ${of.map(([label, shown]) => html`<div key=${label}><dt>${label}</dt><dd>${shown}</dd></div>`)}
  </dl>`;
}

export function Badge({ children, tone = "", title }) {
  return html`<span class=${`badge ${tone}`} title=${title}>${children}</span>`;
}

export function Section({ title, children, id, actions }) {
  return html`<section aria-labelledby=${id} class="section">
    <header><h2 id=${id}>${title}</h2>${actions}</header>
    ${children}
  </section>`;
}

// Something that is not looked at each time: closed until the user opens it.
export function Fold({ title, children, open = false }) {
  return html`<details class="fold" open=${open}><summary>${title}</summary>
    <div class="folded">${children}</div></details>`;
}

// What an empty place is for, and the command that fills it.
export function Empty({ title, command, children }) {
  return html`<div class="nothing"><strong>${title}</strong>
    ${children && html`<p>${children}</p>`}
    ${command && html`<code>${command}</code>`}</div>`;
}

// The place of what is not known yet, so that nothing jumps when it is.
export function Skeleton({ lines = 6 }) {
  const each = Array.from({ length: lines }, (_, index) => html`<i key=${index}></i>`);
  return html`<div class="skeleton" role="status">
    <span class="unseen">Loading…</span>${each}</div>`;
}

// Before the first answer: nothing of it yet, or why there is none.
export function Awaited({ error, onRetry }) {
  return error ? html`<${Problem} error=${error} onRetry=${onRetry} />` : html`<${Skeleton} />`;
}

// How long ago a time in milliseconds was; the time itself is its title.
export function RelativeTime({ ms }) {
  if (!ms) return NOTHING;
  return html`<time datetime=${new Date(ms).toISOString()} title=${dateTime(ms)}>${ago(ms)}</time>`;
}

// The harebell; its name is beside it.
export function Logo() {
  return html`<img class="logo" src=${ICON} alt="" width="22" height="22" />`;
}

// A small table without scrolling: rows of cells below headings. With `keys`, one for each of them,
// rows keep what is open and typed in them when others come before.
export function Rows({ label, heads, rows, keys, empty = "None." }) {
  if (!rows.length) return html`<div class="empty">${empty}</div>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
    <table class="rows">
      <thead><tr>${heads.map(
        (head, index) => html`<th key=${index}
        scope="col">${head}</th>`,
      )}</tr></thead>
      <tbody>${rows.map(
        (row, number) => html`<tr key=${keys?.[number] ?? number}>
        ${row.map((cell, index) => html`<td key=${index}>${cell}</td>`)}</tr>`,
      )}</tbody>
    </table>
  </div>`;
}

// A section with the rows of a list once it was read, and forms below.
export function Listing({ id, title, data = true, error, children, ...rest }) {
  return html`<${Section} id=${id} title=${title}>
    ${!data ? html`<${Awaited} error=${error} />` : html`<${Problem} error=${error} />`}
    ${data && html`<${Rows} label=${title} ...${rest} />`}
    ${children}
  </${Section}>`;
}

// The members of an object, a line each.
export function Members({ of, empty = "None." }) {
  const entries = Object.entries(of ?? {});
  if (!entries.length) return html`<div class="empty">${empty}</div>`;
  return html`<dl class="members">${entries.map(
    ([name, each]) => html`
    <div key=${name}><dt>${name}</dt><dd>${value(each)}</dd></div>`,
  )}</dl>`;
}
