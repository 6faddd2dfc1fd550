// Questions in SQL: an editor, the answer as a table or a chart, and the last questions.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, ask, path, send } from "../lib/api.js";
import { useId } from "../lib/forms.js";
import { count, value } from "../lib/format.js";
import { html } from "../lib/html.js";
import { kept } from "../lib/kept.js";
import { Fold, Problem, Rows, Section } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { useStore } from "../lib/store.js";
import { useTitle } from "../lib/title.js";
import { useVhosts, vhost } from "../lib/vhosts.js";

const REMEMBERED = 30;
const SUGGESTED = 8;
const BARS = 100;
// A button below the suggestions moves when they close: not between its press and its click.
const CLOSES_MS = 300;
const COLUMNS = [
  ..."value routing_key exchange queue offset timestamp redelivered delivery_count".split(" "),
  ..."properties headers properties.content_type properties.correlation_id".split(" "),
  ..."properties.delivery_mode properties.message_id properties.priority".split(" "),
  ..."properties.reply_to properties.timestamp properties.type properties.app_id".split(" "),
];
const WORDS = [
  ..."SELECT FROM WHERE LIMIT DISTINCT JOIN LEFT HAVING".split(" "),
  ..."BETWEEN LIKE CASE WHEN THEN ELSE".split(" "),
  ...["GROUP BY", "ORDER BY", "count(*)", "sum(", "avg(", "min(", "max(", "queue('", "stream('"],
  ...["CAST(value AS STRING)", "get_json_object(CAST(value AS STRING), '$."],
];
const QUEUE = /\b(?:queue|stream)\('([^']*)$/i;
const WORD = /[\w.]+$/;

// What may stand at the end of a text: {typed, found}, with `typed` the letters that it replaces.
function suggested(text, queues) {
  const named = QUEUE.exec(text);
  const typed = named ? named[1] : (WORD.exec(text)?.[0] ?? "");
  const known = named ? queues : typed ? [...COLUMNS, ...WORDS] : [];
  const start = typed.toLowerCase();
  const found = known.filter((each) => each.toLowerCase().startsWith(start) && each !== typed);
  return { typed, found: found.slice(0, SUGGESTED) };
}

const number = (cell) => typeof cell === "number";

// The columns of bars: the first one of numbers, and the first other one for their names.
function charted({ columns, rows }) {
  const height = columns.findIndex((_, at) => rows.length && rows.every((row) => number(row[at])));
  const names = columns.findIndex((_, at) => at !== height);
  return height < 0 ? null : { height, names: names < 0 ? height : names };
}

function Bars({ answer, by }) {
  const rows = answer.rows.slice(0, BARS);
  const most = Math.max(...rows.map((row) => Math.abs(row[by.height])), Number.MIN_VALUE);
  return html`<${Rows} label="Chart"
    heads=${[answer.columns[by.names], answer.columns[by.height], ""]}
      rows=${rows.map((row) => [
        value(row[by.names]),
        count(row[by.height]),
        html`<svg class="sql-bar" aria-hidden="true"><rect height="100%"
          width=${`${(100 * Math.abs(row[by.height])) / most}%`} /></svg>`,
      ])} />
    ${answer.rows.length > BARS && html`<p class="hint">The first ${BARS} rows.</p>`}`;
}

function Answer({ answer }) {
  const [chart, setChart] = useState(false);
  const by = charted(answer);
  const rows = `${count(answer.rows.length)} ${answer.rows.length === 1 ? "row" : "rows"}`;
  return html`<${Section} id="answer" title="Answer" actions=${
    by &&
    html`<button type="button" class="quiet" aria-pressed=${chart}
      onClick=${() => setChart(!chart)}>Chart</button>`
  }>
    <p class="hint" role="status">${rows}${answer.more && " of more"} from
      ${" "}${count(answer.read)} messages in ${answer.seconds} s</p>
    ${
      chart && by
        ? html`<${Bars} answer=${answer} by=${by} />`
        : html`<${Rows} label="Rows" heads=${answer.columns} empty="No row."
            rows=${answer.rows.map((row) => row.map((cell) => value(cell)))} />`
    }
  </${Section}>`;
}

// A field for SQL, with what may stand at the cursor below it.
function Editor({ text, onText, queues, onRun }) {
  const id = useId("sql");
  const area = useRef(null);
  const [open, setOpen] = useState(null);
  const [active, setActive] = useState(-1);
  const look = () => {
    const { value: all, selectionStart } = area.current;
    const next = suggested(all.slice(0, selectionStart), queues);
    setOpen(next.found.length ? next : null);
    setActive(-1);
  };
  const choose = (each) => {
    const { selectionStart: at } = area.current;
    area.current.setRangeText(each, at - open.typed.length, at, "end");
    onText(area.current.value);
    setOpen(null);
    area.current.focus();
  };
  const press = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      setOpen(null);
      onRun();
    } else if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setActive((active + step + open.found.length) % open.found.length);
    } else if (open && event.key === "Enter" && active >= 0) {
      event.preventDefault();
      choose(open.found[active]);
    } else if (open && event.key === "Escape") {
      setOpen(null);
    }
  };
  return html`<div class="field wide">
    <label for=${id}>Question</label>
    <textarea id=${id} ref=${area} rows="6" class="sql-editor" spellcheck=${false}
      autocomplete="off" aria-autocomplete="list" aria-describedby=${`${id}-hint`}
      aria-controls=${open ? `${id}-list` : undefined}
      aria-activedescendant=${open && active >= 0 ? `${id}-${active}` : undefined}
      value=${text} onKeyDown=${press} onBlur=${() => setTimeout(() => setOpen(null), CLOSES_MS)}
      onInput=${(event) => {
        onText(event.currentTarget.value);
        look();
      }}></textarea>
    ${
      open &&
      html`<ul id=${`${id}-list`} role="listbox" aria-label="Suggestions" class="sql-suggestions">
        ${open.found.map(
          (each, at) => html`<li key=${each} id=${`${id}-${at}`} role="option"
            aria-selected=${at === active} onMouseDown=${(event) => {
              event.preventDefault();
              choose(each);
            }}>${each}</li>`,
        )}</ul>`
    }
    <small id=${`${id}-hint`}
      >Spark SQL. Control and Enter ask; the arrows choose a suggestion.</small>
  </div>`;
}

// Questions that can be asked of any queue.
function examples(name) {
  const queue = `FROM queue('${name.replaceAll("'", "\\'")}')`;
  return [
    `SELECT routing_key, count(*) AS messages\n${queue}\nGROUP BY routing_key`,
    `SELECT offset, timestamp, CAST(value AS STRING) AS body\n${queue}\nLIMIT 20`,
    "SELECT date_trunc('MINUTE', timestamp) AS minute, count(*) AS messages\n" +
      `${queue}\nGROUP BY 1 ORDER BY 1`,
  ];
}

function Questions({ of, onChoose }) {
  return html`<ul class="sql-past">${of.map(
    (each) => html`<li key=${each}><button type="button" class="quiet"
      onClick=${() => onChoose(each)}><code>${each}</code></button></li>`,
  )}</ul>`;
}

export function Sql() {
  useTitle("SQL");
  const history = kept("sql");
  const past = useStore(history);
  const vhosts = useVhosts();
  const chosen = useStore(vhost);
  const [where, setWhere] = useState(chosen || "/");
  const [text, setText] = useState(past[0] ?? "");
  const [state, setState] = useState({ id: null, answer: null, error: null });
  const { data } = usePoll(`queues/${path(where)}?columns=name&page=1&page_size=100`, {
    every: 30000,
  });
  const queues = (data?.items ?? []).map(({ name }) => name);
  const end = (id) => send("DELETE", `sql/${path(id)}`).catch(() => {});
  const running = useRef(null);
  running.current = state.id;
  // A page that is left asks no more.
  useEffect(() => () => running.current && end(running.current), []);
  const run = async () => {
    if (state.id || !text.trim()) return;
    const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
    history.set([text, ...past.filter((each) => each !== text)].slice(0, REMEMBERED));
    setState({ id, answer: null, error: null });
    try {
      const reply = await ask("POST", `sql/${path(where, id)}`, { statement: text });
      const answer = await reply.json();
      if (answer.problem) throw new ApiError(200, answer.problem);
      setState({ id: null, answer, error: null });
    } catch (error) {
      setState({ id: null, answer: null, error });
    }
  };
  return html`<div class="title"><h1>SQL</h1></div>
    <p class="hint">Ask the messages of queues and streams; nothing is taken from them.</p>
    <form class="form" aria-label="Question" onSubmit=${(event) => {
      event.preventDefault();
      run();
    }}>
      <${Editor} text=${text} onText=${setText} queues=${queues} onRun=${run} />
      <div class="buttons">
        <button type="submit" disabled=${state.id !== null}>${state.id ? "Asking…" : "Ask"}</button>
        ${
          state.id &&
          html`<button type="button" class="quiet" onClick=${() => end(state.id)}>Cancel</button>`
        }
        <label class="choice">Vhost
          <select value=${where} onChange=${(event) => setWhere(event.currentTarget.value)}>
            ${(vhosts.length ? vhosts : [where]).map(
              (name) => html`<option key=${name} value=${name}>${name}</option>`,
            )}</select></label>
      </div>
      <${Problem} error=${state.error} />
    </form>
    ${state.answer && html`<${Answer} answer=${state.answer} />`}
    ${
      !text &&
      queues.length > 0 &&
      html`<${Section} id="examples" title="Examples">
        <${Questions} of=${examples(queues[0])} onChoose=${setText} />
      </${Section}>`
    }
    ${
      past.length > 0 &&
      html`<${Fold} title="Last questions"><${Questions} of=${past} onChoose=${setText} />
      <button type="button" class="quiet" onClick=${() => history.set([])}>Forget them</button>
      </${Fold}>`
    }`;
}
