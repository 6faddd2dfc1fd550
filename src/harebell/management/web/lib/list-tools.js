// What is done with a list as a whole: which columns it has, saved filters, and a file of its rows.
import { useState } from "preact/hooks";
import { get } from "./api.js";
import { html } from "./html.js";
import { kept } from "./kept.js";
import { useId } from "./forms.js";
import { Problem } from "./pieces.js";
import { keep } from "./router.js";
import { useStore } from "./store.js";

const FILE_PAGE_ROWS = 500;

// All rows of a list, asked for in large pages one after the other.
export async function everything(where, query, signal) {
  const rows = [];
  for (let page = 1; ; page += 1) {
    const part = `page=${page}&page_size=${FILE_PAGE_ROWS}`;
    const got = await get(`${where}?${part}&${query}`, signal);
    rows.push(...got.items);
    if (page >= got.page_count) return rows;
  }
}

// A cell of a file: spreadsheets take a text that begins with one of these for a formula.
function csvCell(value) {
  let text = value === null || value === undefined ? "" : String(value);
  if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const at = (row, path) => path.split(".").reduce((value, name) => value?.[name], row);

function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function Csv({ label, where, query, columns }) {
  const [state, setState] = useState({ busy: false, error: null });
  const shown = columns.filter(({ sort }) => sort);
  const save = async () => {
    setState({ busy: true, error: null });
    try {
      const rows = await everything(where, query);
      const lines = [
        shown.map((column) => csvCell(column.label)),
        ...rows.map((row) => shown.map(({ sort }) => csvCell(at(row, sort)))),
      ];
      const text = lines.map((cells) => `${cells.join(",")}\r\n`).join("");
      download(`${label.toLowerCase()}.csv`, text);
      setState({ busy: false, error: null });
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<button type="button" class="quiet" disabled=${state.busy} onClick=${save}
      title="All rows of this filter, with the columns that are shown">CSV</button>
    <${Problem} error=${state.error} />`;
}

// The columns of a list, which the user has chosen.
export function useColumns(name, columns) {
  const usual = columns.filter(({ off }) => off).map(({ label }) => label);
  const hidden = useStore(kept(`hidden.${name}`, usual));
  return columns.filter(({ label, fixed }) => fixed || !hidden.includes(label));
}

function Columns({ name, columns, shown }) {
  const labels = shown.map(({ label }) => label);
  const choose = (label, on) => {
    const hidden = columns
      .filter((each) => (each.label === label ? !on : !labels.includes(each.label)))
      .map((each) => each.label);
    kept(`hidden.${name}`).set(hidden);
  };
  return html`<details class="drop"><summary>Columns</summary>
    <fieldset><legend class="unseen">Columns</legend>
      ${columns
        .filter(({ fixed }) => !fixed)
        .map(
          ({ label }) => html`<label key=${label} class="inline"><input type="checkbox"
          checked=${labels.includes(label)}
          onChange=${(event) => choose(label, event.currentTarget.checked)} /> ${label}</label>`,
        )}
    </fieldset></details>`;
}

// Filters with their order, by names that the user gives them.
function Saved({ name, now }) {
  const saved = useStore(kept(`filters.${name}`));
  const id = useId("saved");
  const add = (event) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget).get("name").trim();
    if (!given) return;
    const others = saved.filter((each) => each.name !== given);
    kept(`filters.${name}`).set([...others, { name: given, ...now }]);
    event.currentTarget.reset();
  };
  const use = ({ filter, regex, sort, reverse }) => {
    keep({ filter, regex, sort, reverse, row: "" });
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  };
  const drop = (gone) =>
    kept(`filters.${name}`).set(saved.filter((each) => each.name !== gone.name));
  return html`<details class="drop"><summary>Saved filters</summary>
    <div class="saved">
      ${saved.map(
        (each) => html`<p key=${each.name}>
          <button type="button" class="quiet" onClick=${() => use(each)}>${each.name}</button>
          <button type="button" class="quiet" aria-label=${`Forget ${each.name}`}
            onClick=${() => drop(each)}>×</button></p>`,
      )}
      <form onSubmit=${add} class="inline"><label for=${id}>Save as</label>
        <input id=${id} name="name" type="text" autocomplete="off" maxlength="60" />
        <button type="submit" class="quiet">Save</button></form>
    </div></details>`;
}

export function ListTools({ name, label, where, query, columns, shown, now }) {
  return html`<${Columns} name=${name} columns=${columns} shown=${shown} />
    <${Saved} name=${name} now=${now} />
    <${Csv} label=${label} where=${where} query=${query} columns=${shown} />`;
}
