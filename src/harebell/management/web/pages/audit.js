// Who has changed what: acts of the audit trail by user, object and time, and what each changed.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../lib/api.js";
import { Field } from "../lib/forms.js";
import { count, dateTime, value } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Awaited, Badge, Fold, Problem, Rows } from "../lib/pieces.js";
import { address, keep } from "../lib/router.js";
import { useTitle } from "../lib/title.js";

const PAGE = 100;
const SAVED_PAGE = 1000;
const SAVED = 200000;
const FILTERS = ["user", "object", "act", "of_vhost", "result", "text", "since", "until"];
const RESULTS = [["", "any"], "done", "refused", "failed"];
const TONES = { refused: "warn", failed: "bad" };

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// The acts that a search finds before one of them, the newest first.
async function found(search, before, limit, signal) {
  const query = new URLSearchParams({ ...search, limit });
  if (before) query.set("before", before);
  return (await get(`audit?${query}`, signal)).reverse();
}

const NONE = { lines: null, more: false, busy: true, error: null };

// {lines, more, busy, error, older}: the newest acts, and those that were asked for below them.
function useActs(search) {
  const [state, setState] = useState(NONE);
  const stop = useRef(null);
  const load = async (before) => {
    const { signal } = stop.current;
    try {
      const next = await found(search, before, PAGE, signal);
      // What another search has found is not added to this one.
      if (signal.aborted) return;
      setState(({ lines }) => ({
        lines: before ? [...lines, ...next] : next,
        more: next.length === PAGE,
        busy: false,
        error: null,
      }));
    } catch (error) {
      if (!signal.aborted) setState((old) => ({ ...old, busy: false, error }));
    }
  };
  useEffect(() => {
    stop.current = new AbortController();
    setState(NONE);
    load(0);
    return () => stop.current.abort();
  }, [search]);
  const older = () => {
    setState((old) => ({ ...old, busy: true }));
    load(state.lines.at(-1).number);
  };
  return { ...state, older };
}

// All acts that a search finds, a line of JSON each; says how many they are.
async function saved(search, onPart) {
  const parts = [];
  let before = 0;
  while (parts.length < SAVED) {
    const page = await found(search, before, SAVED_PAGE);
    if (!page.length) break;
    for (const line of page) parts.push(`${JSON.stringify(line)}\n`);
    before = page.at(-1).number;
    onPart(parts.length);
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" }));
  link.download = `audit-${new Date().toISOString().slice(0, 10)}.ndjson`;
  link.click();
  URL.revokeObjectURL(link.href);
  const short = parts.length >= SAVED ? "; there may be more" : "";
  return `${count(parts.length)} acts were saved${short}.`;
}

function Save({ search }) {
  const [said, setSaid] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      setSaid(await saved(search, (done) => setSaid(`${count(done)} acts…`)));
    } catch (failed) {
      setError(failed);
      setSaid("");
    }
    setBusy(false);
  };
  return html`<button type="button" class="quiet" disabled=${busy} onClick=${save}>Save as
      NDJSON</button> <span role="status" class="done">${said}</span>
    <${Problem} error=${error} />`;
}

const shown = (any) => (any === undefined || any === null ? "–" : value(any));

// What was different before; of an object that is new or gone, all of it.
function differences(before, after) {
  const plain = (any) => any !== null && typeof any === "object" && !Array.isArray(any);
  if ((before ?? after) === null || same(before, after)) return [];
  if (!plain(before ?? after) || !plain(after ?? before)) return [["all", before, after]];
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names]
    .map((name) => [name, before?.[name], after?.[name]])
    .filter(([, one, other]) => !same(one, other));
}

function Change({ line }) {
  const changed = differences(line.before, line.after);
  const given = Object.entries(line.arguments ?? {});
  return html`<${Fold} title="Details">
    ${line.reason && html`<p class="hint">${line.reason}</p>`}
    ${
      changed.length > 0 &&
      html`<${Rows} label="What was changed" heads=${["Setting", "Before", "After"]}
        rows=${changed.map(([name, one, other]) => [name, shown(one), shown(other)])} />`
    }
    ${
      given.length > 0 &&
      html`<${Rows} label="What was asked for" heads=${["Argument", "Value"]}
        rows=${given.map(([name, each]) => [name, shown(each)])} />`
    }
    <p class="hint">${line.door} from ${line.peer || "an unknown place"}</p>
  </${Fold}>`;
}

const cells = (line) => [
  html`<time datetime=${line.time}>${dateTime(Date.parse(line.time))}</time>`,
  line.user,
  line.act,
  line.vhost,
  line.object,
  html`<${Badge} tone=${TONES[line.result] ?? ""}>${line.result}</${Badge}>`,
  html`<${Change} line=${line} />`,
];

function Search({ search, onSearch }) {
  const submit = (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.currentTarget));
    keep(given);
    onSearch(Object.fromEntries(Object.entries(given).filter(([, each]) => each)));
  };
  const field = (name) => ({ name, value: search[name] ?? "" });
  return html`<form class="form" aria-label="Search" onSubmit=${submit}>
    <div class="fields">
      <${Field} label="User" ...${field("user")} />
      <${Field} label="Object" hint="Part of its name" ...${field("object")} />
      <${Field} label="Act" hint="Such as queues, or queues.delete" ...${field("act")} />
      <${Field} label="Vhost" ...${field("of_vhost")} />
      <${Field} label="Result" options=${RESULTS} ...${field("result")} />
      <${Field} label="Text" hint="Anywhere in the line" ...${field("text")} />
      <${Field} label="Since" hint="2h, 7d or 2026-01-31" ...${field("since")} />
      <${Field} label="Until" ...${field("until")} />
    </div>
    <div class="buttons"><button type="submit">Search</button></div>
  </form>`;
}

export function Audit() {
  useTitle("Audit");
  const [search, setSearch] = useState(() => {
    const query = address();
    return Object.fromEntries(FILTERS.map((name) => [name, query.get(name)]).filter(([, v]) => v));
  });
  const { lines, more, busy, error, older } = useActs(search);
  return html`<div class="title"><h1>Audit</h1><span class="space"></span>
      <${Save} search=${search} /></div>
    <${Search} search=${search} onSearch=${setSearch} />
    ${
      lines
        ? html`<${Problem} error=${error} />`
        : html`<${Awaited} error=${error} onRetry=${() => setSearch({ ...search })} />`
    }
    ${
      lines &&
      html`<p class="total" role="status">${count(lines.length)} acts, the last one first${
        more ? "; there are older ones" : ""
      }.</p>
      <${Rows} label="Acts" heads=${["Time", "User", "Act", "Vhost", "Object", "Result", "More"]}
        rows=${lines.map(cells)} keys=${lines.map(({ number }) => number)}
        empty="No act was found." />
      ${more && html`<button type="button" disabled=${busy} onClick=${older}>Older acts</button>`}`
    }`;
}
