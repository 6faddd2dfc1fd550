// The messages of a queue: browsed without consuming them, or got.
import { useState } from "preact/hooks";
import { send } from "../lib/api.js";
import { Field, Form } from "../lib/forms.js";
import { bytes, count } from "../lib/format.js";
import { html } from "../lib/html.js";
import { lines } from "../lib/lines.js";
import { Badge, Members } from "../lib/pieces.js";
import { exchangeName } from "./bindings.js";

const BODY_BYTES = 50000;

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export function Message({ message }) {
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
    <h4>Body${message.payload_encoding === "base64" ? " (base64)" : ""}</h4>
    <pre tabindex="0" role="region" aria-label="Body">${
      message.payload_encoding === "base64" ? message.payload : pretty(message.payload)
    }</pre>
  </article>`;
}

export function Browse({ where }) {
  const [found, setFound] = useState(null);
  const browse = async ({ condition, limit, from, state }) => {
    const query = new URLSearchParams({ limit, state, truncate: String(BODY_BYTES) });
    if (condition.trim()) query.set("where", condition);
    if (from.trim()) query.set("from", from);
    const rows = await lines(`${where}/browse?${query}`);
    setFound(rows);
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
      message=${each} />`,
    )}</div>`;
}

export function GetMessages({ where }) {
  const [found, setFound] = useState(null);
  const take = async ({ limit, mode }) => {
    const rows = await send("POST", `${where}/get`, {
      count: Number(limit),
      ackmode: mode,
      encoding: "auto",
      truncate: BODY_BYTES,
    });
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
