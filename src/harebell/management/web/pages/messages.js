// The messages of a queue: browsed without consuming them, followed as they come, or got. Each is a
// row that opens.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, ask } from "../lib/api.js";
import { Field, Form, useId } from "../lib/forms.js";
import { bytes, count, dateTime } from "../lib/format.js";
import { html } from "../lib/html.js";
import { lines } from "../lib/lines.js";
import { Badge, Problem } from "../lib/pieces.js";
import { repeat } from "../lib/poll.js";
import { exact } from "../lib/pretty.js";
import { exchangeName } from "./bindings.js";

const BODY_BYTES = 50000;
// The most that the API shows of a body that is browsed.
const WHOLE_BYTES = 1048576;
const FOLLOW_MS = 1000;
const FOLLOWED_ROWS = 200;
const OPENED_AT_ONCE = 100;

// Vhost and name of the queue that a path of the API means.
function namesOf(where) {
  const [, vhost, queue] = where.split("/").map(decodeURIComponent);
  return { vhost, queue };
}

// An opened message; what it shows is loaded with the first one. Messages of a list share `schema`,
// which is changed by `onSchema`.
export function Opened(props) {
  const [state, setState] = useState({ Message: null, error: null });
  const [schema, onSchema] = useState({});
  useEffect(() => {
    import("./message.js").then(
      ({ Message }) => setState({ Message, error: null }),
      () => setState({ Message: null, error: new Error("A part of the page is not there.") }),
    );
  }, []);
  if (!state.Message) return html`<${Problem} error=${state.error} />`;
  return html`<${state.Message} schema=${schema} onSchema=${onSchema} ...${props} />`;
}

function MessageRow({ message, open, onToggle, children }) {
  const id = useId("message");
  const { content_type: type } = message.properties ?? {};
  return html`<tr>
      <td><button type="button" class="quiet" aria-expanded=${open}
        aria-controls=${open ? id : undefined} onClick=${onToggle}><span
        aria-hidden="true">${open ? "▾" : "▸"}</span> ${
          message.offset === undefined ? "Open" : count(message.offset)
        }</button></td>
      <td class="side">${message.timestamp && dateTime(Date.parse(message.timestamp))}</td>
      <td class="side">${exchangeName(message.exchange)}</td>
      <td><code>${message.routing_key}</code></td>
      <td class="side">${type}</td>
      <td>${bytes(message.payload_bytes)}
        ${message.redelivered && html` <${Badge}>redelivered</${Badge}>`}
        ${message.state === "unacknowledged" && html` <${Badge}>unacknowledged</${Badge}>`}</td>
    </tr>
    ${open && html`<tr id=${id} class="opened"><td colspan="6">${children}</td></tr>`}`;
}

// `fetchAll` returns a message with all of its body.
function MessageTable({ label, messages, where, fetchAll, onFollow }) {
  const [opened, setOpened] = useState(new Set());
  const [schema, setSchema] = useState({});
  const keyOf = (message, at) => message.offset ?? at;
  const few = messages.slice(0, OPENED_AT_ONCE);
  useEffect(() => {
    if (messages.length === 1) setOpened(new Set([keyOf(messages[0], 0)]));
  }, [messages]);
  const toggle = (key) => {
    const next = new Set(opened);
    if (!next.delete(key)) next.add(key);
    setOpened(next);
  };
  if (!messages.length) return html`<p class="empty">No message.</p>`;
  return html`<div class="buttons">
      <button type="button" class="quiet"
        onClick=${() => setOpened(new Set(few.map(keyOf)))}>${
          few.length < messages.length ? `Open the first ${OPENED_AT_ONCE}` : "Open all"
        }</button>
      <button type="button" class="quiet" onClick=${() => setOpened(new Set())}>Close all</button>
    </div>
    <table class="rows messages" aria-label=${label}>
      <thead><tr><th scope="col">Offset</th><th scope="col" class="side">Received</th>
        <th scope="col" class="side">Exchange</th><th scope="col">Routing key</th>
        <th scope="col" class="side">Content type</th><th scope="col">Size</th></tr></thead>
      <tbody>${messages.map((message, at) => {
        const key = keyOf(message, at);
        return html`<${MessageRow} key=${key} message=${message} open=${opened.has(key)}
          onToggle=${() => toggle(key)}>
          ${
            onFollow &&
            html`<div class="buttons"><button type="button" class="quiet"
              onClick=${() => onFollow(message.routing_key)}>Follow this routing key</button></div>`
          }
          <${Opened} message=${message} ...${namesOf(where)} schema=${schema} onSchema=${setSchema}
            fetchAll=${fetchAll && (() => fetchAll(message))} />
        </${MessageRow}>`;
      })}</tbody>
    </table>`;
}

// A text in a condition.
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

// Messages as they come: the newest first, at most so many.
function Followed({ where, condition, fetchAll, onEnd }) {
  const [rows, setRows] = useState([]);
  const [total, setTotal] = useState(0);
  const [error, setError] = useState(null);
  const [paused, setPaused] = useState(false);
  const next = useRef(null);
  useEffect(() => {
    if (paused) return undefined;
    return repeat(async (signal) => {
      try {
        if (next.current === null) {
          const [last] = await lines(`${where}/browse?state=all&from=last&truncate=0`, signal);
          next.current = last ? last.offset + 1 : 0;
        }
        const query = new URLSearchParams({
          ...{ from: next.current, limit: FOLLOWED_ROWS, state: "all", truncate: BODY_BYTES },
          ...{ exact: true, ...(condition && { where: condition }) },
        });
        const came = await lines(`${where}/browse?${query}`, signal);
        if (signal.aborted) return true;
        if (came.length) {
          next.current = came.at(-1).offset + 1;
          setTotal((sum) => sum + came.length);
          setRows((old) => [...came.reverse(), ...old].slice(0, FOLLOWED_ROWS));
        }
        setError(null);
        return true;
      } catch (problem) {
        if (!signal.aborted) setError(problem);
        return !problem.away;
      }
    }, FOLLOW_MS);
  }, [where, condition, paused]);
  return html`<div class="buttons">
      <span role="status">${
        paused ? "Paused" : "Following"
      }${condition && ` where ${condition}`}: ${count(total)} came.</span>
      <button type="button" class="quiet"
        onClick=${() => setPaused(!paused)}>${paused ? "Go on" : "Pause"}</button>
      <button type="button" class="quiet" onClick=${onEnd}>End</button>
    </div>
    <${Problem} error=${error} />
    <${MessageTable} label="Messages that came" messages=${rows} where=${where}
      fetchAll=${fetchAll} />`;
}

export function Browse({ where }) {
  const [found, setFound] = useState(null);
  const [asked, setAsked] = useState(null);
  const [followed, setFollowed] = useState(null);
  const typed = useRef("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const latest = useRef(0);
  const read = async (query) => {
    latest.current += 1;
    const mine = latest.current;
    setBusy(true);
    try {
      const rows = await lines(`${where}/browse?${new URLSearchParams(query)}`);
      // What was asked for before is not shown in the place of what was asked for last.
      if (mine === latest.current) {
        setFound(rows);
        setAsked(query);
        setError(null);
      }
      return rows;
    } finally {
      if (mine === latest.current) setBusy(false);
    }
  };
  // Bodies are read whole up to the most that the API shows of one.
  const whole = async ({ offset }) => {
    const query = new URLSearchParams({
      ...{ limit: 1, state: "all", from: offset, truncate: WHOLE_BYTES, exact: true },
    });
    const [first] = await lines(`${where}/browse?${query}`);
    if (first?.offset !== offset) throw new ApiError(404, "The message is not there any more.");
    return first;
  };
  const browse = async ({ condition, limit, from, moment, state }) => {
    const start = moment ? new Date(moment).toISOString() : from.trim();
    const wanted = condition.trim();
    const rows = await read({
      ...{ limit, state, truncate: BODY_BYTES, exact: true },
      ...(wanted && { where: wanted }),
      ...(start && { from: start }),
    });
    return `${count(rows.length)} messages. They stay where they are.`;
  };
  const nextPage = async () => {
    try {
      await read({ ...asked, from: found.at(-1).offset + 1 });
    } catch (problem) {
      setError(problem);
    }
  };
  const follow = (condition) => setFollowed({ condition, number: Date.now() });
  return html`<${Form} label="Browse" button="Browse" action=${browse}>
      <${Field} label="Condition" name="condition" wide
        onInput=${(event) => {
          typed.current = event.currentTarget.value.trim();
        }}
        hint="such as body.total > 100 AND routing_key LIKE 'eu.%'; none selects all" />
      <${Field} label="At most" name="limit" value="20" type="number" min="1" max="1000" required />
      <${Field} label="From" name="from"
        hint="an offset; -10 for the last ten; 5m for so long ago" />
      <${Field} label="or from a time" name="moment" type="datetime-local" step="1" />
      <${Field} label="State" name="state" value="ready"
        options=${[
          ["ready", "ready"],
          ["all", "also unacknowledged"],
        ]} />
    </${Form}>
    ${
      followed
        ? html`<${Followed} key=${followed.number} where=${where} fetchAll=${whole}
            condition=${followed.condition} onEnd=${() => setFollowed(null)} />`
        : html`<div class="buttons"><button type="button" class="quiet"
            onClick=${() => follow(typed.current)}>Follow what comes</button></div>`
    }
    ${
      found &&
      html`<${MessageTable} label="Messages" messages=${found} where=${where} fetchAll=${whole}
        onFollow=${(key) => follow(`routing_key = ${quoted(key)}`)} />
      <${Problem} error=${error} />
      ${
        found.length >= Number(asked.limit) &&
        html`<div class="buttons"><button type="button" class="quiet"
          disabled=${busy} onClick=${nextPage}>Next page</button></div>`
      }`
    }`;
}

export function GetMessages({ where }) {
  const [found, setFound] = useState(null);
  const take = async ({ limit, mode }) => {
    const answer = await ask("POST", `${where}/get`, {
      ...{ count: Number(limit), ackmode: mode, encoding: "auto", exact: true },
    });
    const rows = exact(await answer.text());
    setFound(rows);
    return rows.length ? `${count(rows.length)} messages.` : "The queue has no ready message.";
  };
  return html`<${Form} label="Get" button="Get" action=${take}>
      <${Field} label="At most" name="limit" value="1" type="number" min="1" max="100" required />
      <${Field} label="Afterwards" name="mode" value="ack_requeue_true" options=${[
        ["ack_requeue_true", "requeue them, marked as redelivered"],
        ["ack_requeue_false", "acknowledge them: they are gone"],
        ["reject_requeue_true", "reject and requeue them"],
        ["reject_requeue_false", "reject them: dead-lettered or gone"],
      ]} />
    </${Form}>
    ${found && html`<${MessageTable} label="Messages got" messages=${found} where=${where} />`}`;
}
