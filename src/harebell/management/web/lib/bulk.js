// One action for many rows: a preview of what is hit, a confirmation that names the count, and
// what came of each row.
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "./format.js";
import { useId } from "./forms.js";
import { html } from "./html.js";
import { Problem, Rows } from "./pieces.js";

const PREVIEW_ROWS = 100;
const AT_ONCE = 4;

export const several = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

// Run an action for each row, a few at the same time. `told(outcomes)` hears of each end.
async function runAll(rows, run, told, stop) {
  const outcomes = [];
  const left = [...rows];
  const work = async () => {
    while (left.length && !stop.aborted) {
      const row = left.shift();
      try {
        outcomes.push({ row, said: (await run(row, stop)) ?? "done" });
      } catch (error) {
        outcomes.push({ row, error: error.message });
      }
      told([...outcomes]);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return outcomes;
}

function Preview({ action, rows, what }) {
  const more = rows.length - PREVIEW_ROWS;
  return html`<div class="preview"><${Rows} label=${`The ${what}s that are hit`}
    heads=${action.heads} rows=${rows.slice(0, PREVIEW_ROWS).map(action.preview)} /></div>
    ${more > 0 && html`<p class="hint">and ${several(more, what)} more.</p>`}`;
}

function Outcomes({ outcomes, total, busy, what, nameOf }) {
  const refused = outcomes.filter(({ error }) => error);
  const done = outcomes.length - refused.length;
  const rest = total - outcomes.length;
  return html`<p role="status">${several(done, what)} done, ${count(refused.length)} refused${
    rest > 0 ? `, ${count(rest)} ${busy ? "left" : "not tried"}` : ""
  }.</p>
    <div class="preview"><${Rows} label="What came of each" heads=${["Name", "Outcome"]}
      rows=${[...refused, ...outcomes.filter(({ error }) => !error)]
        .slice(0, PREVIEW_ROWS)
        .map(({ row, said, error }) => [
          nameOf(row),
          error ? html`<span class="problem">${error}</span>` : said,
        ])} /></div>`;
}

// `action`: {label, title(rows), text(rows), heads, preview(row), fields, prepare(rows, values),
// run(row, values, prepared, signal)}; `prepare` may refuse all of it before any row is touched.
function Dialog({ action, rows, what, nameOf, onClose }) {
  const heading = useId("bulk");
  const stop = useRef(new AbortController());
  const [typed, setTyped] = useState("");
  const [state, setState] = useState({ busy: false, error: null, outcomes: null });
  const needed = String(rows.length);
  // A page that is left begins with no further row.
  useEffect(() => () => stop.current.abort(), []);
  const start = async (event) => {
    event.preventDefault();
    if (typed !== needed || state.busy) return;
    const values = Object.fromEntries(new FormData(event.currentTarget));
    setState({ busy: true, error: null, outcomes: null });
    try {
      const prepared = await action.prepare?.(rows, values);
      const told = (outcomes) => setState({ busy: true, error: null, outcomes });
      const run = (row, signal) => action.run(row, values, prepared, signal);
      const outcomes = await runAll(rows, run, told, stop.current.signal);
      setState({ busy: false, error: null, outcomes });
    } catch (error) {
      setState({ busy: false, error, outcomes: null });
    }
  };
  const shown = (dialog) => dialog && !dialog.open && dialog.showModal();
  return html`<dialog ref=${shown} class="bulk" aria-labelledby=${heading}
    onCancel=${(event) => (state.busy ? event.preventDefault() : undefined)}
    onClose=${() => onClose(state.outcomes)}>
    <form onSubmit=${start}>
      <h2 id=${heading}>${action.label} ${several(rows.length, what)}?</h2>
      ${
        state.outcomes
          ? html`<${Outcomes} outcomes=${state.outcomes} total=${rows.length} busy=${state.busy}
          what=${what} nameOf=${nameOf} />`
          : html`<p>${action.text(rows)}</p>
        <${Preview} action=${action} rows=${rows} what=${what} />
        <div class="fields">${action.fields?.(rows)}
          <div class="field wide"><label for=${`${heading}-count`}
            >Type <code>${needed}</code> to confirm</label>
          <input id=${`${heading}-count`} type="text" inputmode="numeric" autocomplete="off"
            value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)} /></div></div>`
      }
      <${Problem} error=${state.error} />
      <div class="buttons">
        ${
          state.outcomes === null &&
          html`<button type="submit" class="danger" disabled=${state.busy || typed !== needed}
          >${action.label} ${several(rows.length, what)}</button>`
        }
        ${
          state.busy
            ? html`<button type="button" class="quiet"
              onClick=${() => stop.current.abort()}>Stop</button>`
            : html`<button type="button" class="quiet"
              onClick=${(event) => event.currentTarget.closest("dialog").close()}
              >${state.outcomes ? "Close" : "Cancel"}</button>`
        }
      </div>
    </form></dialog>`;
}

// The buttons for what is chosen; nothing while nothing is.
export function BulkBar({ what, selection, actions, onDone }) {
  const [open, setOpen] = useState(null);
  const rows = [...selection.chosen.values()];
  const close = (outcomes) => {
    setOpen(null);
    if (outcomes === null) return;
    // What was refused stays chosen.
    selection.choose(
      outcomes.filter(({ error }) => !error).map(({ row }) => row),
      false,
    );
    onDone();
  };
  if (!rows.length) return null;
  return html`<div class="bulk-bar" role="group" aria-label="Chosen">
    <span role="status">${several(rows.length, what)} chosen</span>
    ${actions.map(
      (action) => html`<button type="button" key=${action.label} class="quiet"
        onClick=${() => setOpen({ action, rows })}>${action.label}…</button>`,
    )}
    <button type="button" class="quiet" onClick=${selection.clear}>Choose none</button>
    ${
      open &&
      html`<${Dialog} action=${open.action} rows=${open.rows} what=${what}
        nameOf=${selection.nameOf} onClose=${close} />`
    }
  </div>`;
}

