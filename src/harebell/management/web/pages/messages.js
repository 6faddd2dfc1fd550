// The messages of a queue: browsed without consuming them, or got.
import { useState } from "preact/hooks";
import { ApiError, ask } from "../lib/api.js";
import { Field, Form } from "../lib/forms.js";
import { bytes, count } from "../lib/format.js";
import { html } from "../lib/html.js";
import { lines } from "../lib/lines.js";
import { Badge, Members, Problem } from "../lib/pieces.js";
import { bytesOf, exact, pretty } from "../lib/pretty.js";
import { exchangeName } from "./bindings.js";

const BODY_BYTES = 50000;
// The most that the API shows of a body that is browsed.
const WHOLE_BYTES = 1048576;

// The text that is shown at first, and whether there is more of it.
function cutOf(text, whole) {
  return whole || text.length <= BODY_BYTES ? text : text.slice(0, BODY_BYTES);
}

// A body as it is; `fetchAll` returns a message with all of its body.
function Body({ message, fetchAll }) {
  const [loaded, setLoaded] = useState(null);
  const [whole, setWhole] = useState(false);
  const [error, setError] = useState(null);
  const { payload, payload_encoding: encoding } = loaded ?? message;
  const encoded = encoding === "base64";
  const text = encoded ? payload : pretty(payload);
  const shown = cutOf(text, whole);
  const there = shown === text ? bytesOf(payload, encoding) : shown.length;
  const isCut = shown !== text || there < message.payload_bytes;
  const all = async (event) => {
    event.preventDefault();
    try {
      if (bytesOf(payload, encoding) < message.payload_bytes) setLoaded(await fetchAll());
      setWhole(true);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<h4>Body${encoded ? " (base64)" : ""}</h4>
    <${Problem} error=${error} />
    ${
      isCut &&
      html`<p class="hint">The first ${bytes(there)} of ${count(message.payload_bytes)} bytes.
      ${" "}${
        there < WHOLE_BYTES || !fetchAll
          ? html`<a href="#" role="button" onClick=${all}>${
              fetchAll && message.payload_bytes > WHOLE_BYTES ? "Show 1 MiB" : "Show all of it"
            }</a>`
          : "Get shows all of it."
      }</p>`
    }
    <pre tabindex="0" role="region" aria-label="Body">${shown}</pre>`;
}

export function Message({ message, fetchAll }) {
  const { headers, ...properties } = message.properties ?? {};
  return html`<article class="message">
    <header>
      ${message.offset !== undefined && html`<b>${count(message.offset)}</b>`}
      <span>${exchangeName(message.exchange)} → <code>${message.routing_key}</code></span>
      ${message.timestamp && html`<time datetime=${message.timestamp}>${message.timestamp}</time>`}
      ${message.redelivered && html`<${Badge}>redelivered</${Badge}>`}
      ${message.state === "unacknowledged" && html`<${Badge}>unacknowledged</${Badge}>`}
      <span class="space"></span><span>${bytes(message.payload_bytes)}</span>
    </header>
    <div class="parts">
      <div><h4>Properties</h4><${Members} of=${properties} /></div>
      <div><h4>Headers</h4><${Members} of=${headers} /></div>
    </div>
    <${Body} message=${message} fetchAll=${fetchAll} />
  </article>`;
}

export function Browse({ where }) {
  const [found, setFound] = useState(null);
  const [asked, setAsked] = useState("ready");
  // Bodies are read whole up to the most that the API shows of one.
  const whole = async ({ offset }) => {
    const query = new URLSearchParams({
      limit: 1,
      state: asked,
      from: offset,
      truncate: WHOLE_BYTES,
    });
    const [first] = await lines(`${where}/browse?${query}`);
    if (first?.offset !== offset) throw new ApiError(404, "The message is not there any more.");
    return first;
  };
  const browse = async ({ condition, limit, from, state }) => {
    const query = new URLSearchParams({ limit, state, truncate: String(BODY_BYTES) });
    if (condition.trim()) query.set("where", condition);
    if (from.trim()) query.set("from", from);
    const rows = await lines(`${where}/browse?${query}`);
    setFound(rows);
    setAsked(state);
    return `${count(rows.length)} messages. They stay where they are.`;
  };
  return html`<${Form} label="Browse" button="Browse" action=${browse}>
      <${Field} label="Condition" name="condition" wide
        hint="such as body.total > 100 AND routing_key LIKE 'eu.%'; none selects all" />
      <${Field} label="At most" name="limit" value="20" type="number" min="1" max="1000" required />
      <${Field} label="From" name="from" hint="an offset; -10 for the last ten" />
      <${Field} label="State" name="state" value="ready"
        options=${[
          ["ready", "ready"],
          ["all", "also unacknowledged"],
        ]} />
    </${Form}>
    <div class="messages">${found?.map(
      (each) => html`<${Message} key=${each.offset}
      message=${each} fetchAll=${() => whole(each)} />`,
    )}</div>`;
}

export function GetMessages({ where }) {
  const [found, setFound] = useState(null);
  const take = async ({ limit, mode }) => {
    const answer = await ask("POST", `${where}/get`, {
      count: Number(limit),
      ackmode: mode,
      encoding: "auto",
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
    <div class="messages">${found?.map(
      (each, at) => html`<${Message} key=${at}
      message=${each} />`,
    )}</div>`;
}
