// A table of any length: the broker filters, sorts and pages, and only rows in view are drawn.
import {
  useEffect,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from "preact/hooks";
import { get } from "./api.js";
import { html } from "./html.js";
import { count } from "./format.js";
import { useId } from "./forms.js";
import { ListTools, everything, useColumns } from "./list-tools.js";
import { Problem, Skeleton } from "./pieces.js";
import { repeat } from "./poll.js";
import { address, keep } from "./router.js";
import { session } from "./session.js";
import { useStore } from "./store.js";
import { visible } from "./vhosts.js";

const ROW_PX = 36;
const GAP_PX = 12;
const PADDING_PX = 16;
const WIDTH = "minmax(60px, 1fr)";
const PAGE_ROWS = 100;
const AHEAD_ROWS = 6;
const FIRST_ROWS = 30;
const SETTLE_MS = 60;
const TYPING_MS = 250;
const NOTE_MS = 100;

// {rows, total, error}: the rows of some pages of a list, kept while the same list is asked for.
function useRows(where, query, first, last, round) {
  const list = useRef({ key: null, pages: new Map(), total: null, error: null }).current;
  const [, redraw] = useReducer((number) => number + 1, 0);
  const key = `${where}?${query}`;
  if (list.key !== key) {
    list.key = key;
    list.pages = new Map();
    list.error = null;
  }
  const from = Math.floor(first / PAGE_ROWS);
  const to = Math.floor(last / PAGE_ROWS);
  useEffect(() => {
    let fresh = false;
    let stop = () => {};
    const load = async (signal) => {
      try {
        for (let page = from; page <= to; page += 1) {
          if (!fresh && list.pages.has(page) && from !== to) continue;
          const part = (number) =>
            get(`${where}?page=${number + 1}&page_size=${PAGE_ROWS}&${query}`, signal);
          let at = page;
          const got = await part(at).catch((error) => {
            // The list has become shorter: its first page says how long it is.
            if (error.status !== 400 || at === 0) throw error;
            at = 0;
            return part(at);
          });
          // Another list may be drawn whose effects, which end this one, have not run yet.
          if (signal.aborted || list.key !== key) return true;
          list.pages.set(at, got.items);
          list.total = got.filtered_count;
          list.error = null;
          redraw();
          if (at !== page) break;
        }
        fresh = true;
        return true;
      } catch (error) {
        if (signal.aborted || list.key !== key) return true;
        list.error = error;
        redraw();
        return !error.away;
      }
    };
    // A page that is only scrolled past is not asked for.
    const timer = setTimeout(
      () => {
        stop = repeat(load);
      },
      list.pages.size ? SETTLE_MS : 0,
    );
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [key, from, to, round]);
  return list;
}

function Head({ column, sort, onSort }) {
  const sorted = column.sort && sort.by === column.sort;
  const order = sorted ? (sort.reverse ? "descending" : "ascending") : undefined;
  const name = `cell ${column.number ? "number" : ""} ${column.wide ? "wide" : ""}`;
  return html`<div role="columnheader" class=${name} aria-sort=${order}>
    ${
      column.sort
        ? html`<button type="button" class="sort" onClick=${() => onSort(column)}>
      ${column.label}<span aria-hidden="true">${sorted ? (sort.reverse ? " ↓" : " ↑") : ""}</span>
    </button>`
        : (column.head ?? column.label)
    }
  </div>`;
}

function Row({ row, index, columns }) {
  return html`<div role="row" class="row" aria-rowindex=${index + 2}
    style=${{ transform: `translateY(${index * ROW_PX}px)` }}>
    ${columns.map(
      (column) => html`<div role="cell" key=${column.key ?? column.label}
      class=${`cell ${column.number ? "number" : ""} ${column.wide ? "wide" : ""}`}>
      ${column.cell(row)}</div>`,
    )}
  </div>`;
}

// Rows that are not known yet are not drawn: only the lines of the table are there. A row that has
// not changed keeps its elements, which are not compared again. Rows with a key keep them wherever
// they are, and others leave theirs to those that come into view.
function useDrawn(columns, keyed) {
  const drawn = useRef({ columns: null, rows: new Map() }).current;
  if (drawn.columns !== columns) {
    drawn.columns = columns;
    drawn.rows = new Map();
  }
  return (slot, row, index) => {
    const key = keyed ? keyed(row) : slot;
    const before = drawn.rows.get(key);
    if (before?.row === row && before.index === index) return before.element;
    const element = html`<${Row} key=${key} row=${row} index=${index} columns=${columns} />`;
    drawn.rows.set(key, { row, index, element });
    return element;
  };
}

// What an empty list says: somebody without rights sees none of what is there.
function whyEmpty(text, empty, vhosts) {
  if (vhosts?.length === 0) {
    return `You have no permissions in any vhost. An administrator gives them: \
\`harebell permissions set ${session.get()?.name} CONFIGURE WRITE READ\`.`;
  }
  return text ? `Nothing matches '${text}'.` : empty;
}

// The filter, the order and the first row in view that the address has:
// #/queues?filter=eu&sort=messages&reverse=true&row=120.
function addressed(sorted) {
  const query = address();
  return {
    text: query.get("filter") ?? "",
    pattern: query.get("regex") === "true",
    sort: query.has("sort")
      ? { by: query.get("sort"), reverse: query.get("reverse") === "true" }
      : sorted,
    row: Math.max(1, Math.floor(Number(query.get("row"))) || 1),
  };
}

function widths(columns) {
  return columns.map(({ width = WIDTH }) => width).join(" ");
}

// The pixels that columns need: a table that has fewer is scrolled to the side.
function least(columns) {
  const needed = columns.map(({ width = WIDTH }) => Number(/(\d+)px/.exec(width)?.[1] ?? 0));
  return `${needed.reduce((sum, each) => sum + GAP_PX + each, 2 * PADDING_PX)}px`;
}

// A column of figures, which the broker sorts by; `field` is the path to one: a.b for row.a.b.
export function figure(label, field, shown, more) {
  const names = field.split(".");
  const cell = (row) => shown(names.reduce((value, name) => value?.[name], row));
  return { label, sort: field, number: true, cell, ...more };
}

const nameOfRow = ({ name }) => name;

// What is chosen of a list by check boxes: rows by their keys. `nameOf` is how a row is shown.
export function useSelection(keyOf, nameOf = nameOfRow) {
  const [chosen, setChosen] = useState(new Map());
  const choose = (rows, on) =>
    setChosen((old) => {
      const next = new Map(old);
      for (const row of rows) {
        if (on) next.set(keyOf(row), row);
        else next.delete(keyOf(row));
      }
      return next;
    });
  return { chosen, keyOf, nameOf, choose, clear: () => setChosen(new Map()) };
}

// The box in the heading, for all rows of the filter, which are asked for. `onError` hears why
// they were not there.
function All({ selection: { chosen, choose, clear }, total, all, label, onError }) {
  const [busy, setBusy] = useState(false);
  const change = async (event) => {
    const box = event.currentTarget;
    onError(null);
    if (!box.checked) {
      clear();
      return;
    }
    setBusy(true);
    try {
      choose(await all(), true);
    } catch (error) {
      box.checked = false;
      onError(error);
    }
    setBusy(false);
  };
  return html`<input type="checkbox" checked=${busy || (total > 0 && chosen.size >= total)}
    disabled=${busy || !total} onChange=${change}
    aria-label=${`Choose all ${count(total)} ${label.toLowerCase()}`} />`;
}

// The check boxes of a list.
function chooser(selection, total, all, label, onError) {
  const { chosen, keyOf, nameOf, choose } = selection;
  return {
    label: html`<${All} selection=${selection} total=${total} all=${all} label=${label}
      onError=${onError} />`,
    key: "choose",
    fixed: true,
    width: "18px",
    cell: (row) => html`<input type="checkbox" checked=${chosen.has(keyOf(row))}
      onChange=${(event) => choose([row], event.currentTarget.checked)}
      aria-label=${`Choose ${nameOf(row)}`} />`,
  };
}

// The columns: {label, cell(row), sort, number, width, wide, off, fixed, fields}; wide ones are
// left out on a phone, those that are off until the user chooses them, and fixed ones cannot be
// chosen.
// `fields` of a column are asked for when it is shown. With a `name`, columns and filters are kept.
// `keyed(row)` is the key of a row whose cells have to outlive that others come before it.
export function Table({
  label,
  where,
  columns: given,
  name = null,
  selection = null,
  fields = "",
  more = "",
  empty = "None.",
  round = 0,
  filter = true,
  keyed = null,
  sorted = { by: "name", reverse: false },
}) {
  const view = useRef(null);
  const id = useId("table");
  const [begun] = useState(() => addressed(sorted));
  const [sort, setSort] = useState(begun.sort);
  const [text, setText] = useState(begun.text);
  const [typed, setTyped] = useState(begun.text);
  const [pattern, setPattern] = useState(begun.pattern);
  const vhosts = useStore(visible);
  const [span, setSpan] = useState({ first: begun.row - 1, last: begun.row - 1 + FIRST_ROWS });
  // The row that comes to the top when the rows around it are there; 0 for none.
  const awaited = useRef(0);
  const [jump, setJump] = useState(begun);
  const jumped = useRef(null);
  const noting = useRef(null);
  const look = () => {
    if (!view.current || awaited.current) return;
    const { scrollTop, clientHeight } = view.current;
    const first = Math.max(0, Math.floor(scrollTop / ROW_PX) - AHEAD_ROWS);
    const last = Math.ceil((scrollTop + clientHeight) / ROW_PX) + AHEAD_ROWS;
    setSpan((old) => (old.first === first && old.last === last ? old : { first, last }));
  };
  const reach = () => {
    view.current.scrollTop = Math.min(awaited.current - 1, total) * ROW_PX;
    awaited.current = 0;
    look();
  };
  const onScroll = () => {
    look();
    clearTimeout(noting.current);
    noting.current = setTimeout(() => {
      if (awaited.current) return;
      const above = Math.floor(view.current.scrollTop / ROW_PX);
      keep({ row: above && above + 1 });
    }, NOTE_MS);
  };
  const shown = useColumns(name ?? label, given);
  const query = new URLSearchParams();
  if (sort.by) query.set("sort", sort.by);
  if (sort.reverse) query.set("sort_reverse", "true");
  if (text) query.set("name", text);
  if (text && pattern) query.set("use_regex", "true");
  const asked = shown.map((column) => column.fields).filter(Boolean);
  if (fields) query.set("columns", [fields, ...asked].join(","));
  const wanted = [query.toString(), more].filter(Boolean).join("&");
  const list = useRows(where, wanted, span.first, span.last, round);
  const total = list.total ?? 0;
  const all = () => everything(where, query.toString());
  const names = shown.map((column) => column.label).join("\n");
  const [refused, setRefused] = useState(null);
  const columns = useMemo(
    () => (selection ? [chooser(selection, total, all, label, setRefused), ...shown] : shown),
    [given, names, selection?.chosen, wanted, total],
  );
  useEffect(() => {
    const timer = setTimeout(() => setText(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  // A reload and the way back find the filter and the order again.
  useEffect(() => {
    const usual = sort.by === sorted.by && sort.reverse === sorted.reverse;
    keep({
      filter: text,
      regex: pattern && text ? "true" : "",
      sort: usual ? "" : sort.by,
      reverse: !usual && sort.reverse ? "true" : "",
    });
  }, [text, pattern, sort]);
  useEffect(() => {
    const look = () => {
      const now = addressed(sorted);
      setSort((old) =>
        old.by === now.sort.by && old.reverse === now.sort.reverse ? old : now.sort,
      );
      setText(now.text);
      setTyped(now.text);
      setPattern(now.pattern);
      setJump(now);
    };
    window.addEventListener("hashchange", look);
    return () => window.removeEventListener("hashchange", look);
  }, []);
  // Another list begins at its top, or at the row that the address has.
  useEffect(() => {
    awaited.current = jump === jumped.current ? 1 : jump.row;
    jumped.current = jump;
    const first = awaited.current - 1;
    setSpan({ first, last: first + FIRST_ROWS });
    if (!first) reach();
  }, [where, text, pattern, sort, jump]);
  useLayoutEffect(() => {
    if (awaited.current && list.pages.size) reach();
  });
  useEffect(() => () => clearTimeout(noting.current), []);
  useEffect(() => {
    const watch = new ResizeObserver(look);
    watch.observe(view.current);
    return () => watch.disconnect();
  }, []);
  const onSort = (column) =>
    setSort((old) => ({
      by: column.sort,
      reverse: old.by === column.sort ? !old.reverse : Boolean(column.number),
    }));
  // Rows that leave the view become those that enter it.
  const pool = 2 ** Math.ceil(Math.log2(Math.max(64, span.last - span.first)));
  const draw = useDrawn(columns, keyed);
  const rows = [];
  for (let at = span.first; at < Math.min(span.last, total); at += 1) {
    const row = list.pages.get(Math.floor(at / PAGE_ROWS))?.[at % PAGE_ROWS];
    if (row) rows.push(draw(at % pool, row, at));
  }
  const style = {
    "--columns": widths(columns),
    "--least": least(columns),
    "--few": widths(columns.filter(({ wide }) => !wide)),
  };
  return html`<div class="table-box">
    ${
      filter &&
      html`<div class="filters">
      <label for=${id}>Filter</label>
      <input id=${id} type="search" placeholder="part of the name" value=${typed} autocomplete="off"
        spellcheck=${false} onInput=${(event) => setTyped(event.currentTarget.value)} />
      <label class="inline"><input type="checkbox" checked=${pattern}
        onChange=${(event) => setPattern(event.currentTarget.checked)} />
        ${" "}as a regular expression</label>
      ${
        name &&
        html`<${ListTools} name=${name} label=${label} where=${where} query=${query.toString()}
        columns=${given} shown=${shown} now=${{
          filter: text,
          regex: pattern && text ? "true" : "",
          sort: sort.by,
          reverse: sort.reverse ? "true" : "",
        }} />`
      }
      <span class="total" role="status">${list.total === null ? "" : count(list.total)} ${
        list.total === null
          ? ""
          : list.total === 1
            ? label.toLowerCase().replace(/s$/, "")
            : label.toLowerCase()
      }</span>
    </div>`
    }
    <${Problem} error=${list.error ?? refused} />
    <div class="scroll tall" tabindex="0"
      role="region" aria-label=${label} ref=${view} onScroll=${onScroll}>
      <div role="table" class="table" aria-label=${label} aria-rowcount=${total + 1} style=${style}>
        <div role="rowgroup" class="heads"><div role="row" class="row head" aria-rowindex="1">
          ${columns.map(
            (column) => html`<${Head} key=${column.key ?? column.label} column=${column}
            sort=${sort} onSort=${onSort} />`,
          )}
        </div></div>
        <div role="rowgroup" class="body" style=${{ height: `${total * ROW_PX}px` }}>
          ${rows}
        </div>
      </div>
      ${list.total === null && !list.error && html`<${Skeleton} />`}
      ${
        list.total === 0 &&
        html`<div class="empty">${whyEmpty(text, empty, vhosts)}</div>`
      }
    </div>
  </div>`;
}
