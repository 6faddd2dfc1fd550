// What would happen to a message: permissions, bindings that match, and what each queue does.
import { useState } from "preact/hooks";
import { path, send } from "../lib/api.js";
import { Field, Form, objectOf } from "../lib/forms.js";
import { count, value } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Badge, Rows, Section } from "../lib/pieces.js";
import { to } from "../lib/router.js";
import { has } from "../lib/session.js";
import { useTitle } from "../lib/title.js";
import { ExchangeLink, exchangeName } from "./bindings.js";
import { VhostField } from "./queues.js";

const DEFAULT = "amq.default";
const WAYS = {
  publish: "published to",
  binding: "bound to",
  "alternate-exchange": "alternate exchange of",
};
const BAD = new Set(["refused", "drops-oldest", "duplicate"]);

function Step({ step, vhost }) {
  return html`<article class="step">
    <header><${ExchangeLink} vhost=${vhost} name=${step.exchange} />
      <${Badge}>${step.type}</${Badge}>
      <span class="hint">${WAYS[step.via]} ${
        step.via === "publish" ? "by the client" : exchangeName(step.source)
      }</span></header>
    <p>${step.explanation}</p>
    ${
      step.bindings.length > 0 &&
      html`<${Rows} label=${`Bindings of ${exchangeName(step.exchange)} that match`}
        heads=${["Binding key", "Arguments", "To"]}
        rows=${step.bindings.map((each) => [
          html`<code>${each.routing_key}</code>`,
          Object.entries(each.arguments)
            .map(([name, given]) => `${name}=${value(given)}`)
            .join(", "),
          html`${each.destination_type}${" "}${
            each.destination_type === "queue"
              ? html`<a href=${to("queues", vhost, each.destination)}>${each.destination}</a>`
              : html`<${ExchangeLink} vhost=${vhost} name=${each.destination} />`
          }`,
        ])} />`
    }
    ${step.more_bindings && html`<p class="hint">More bindings match than are shown.</p>`}
  </article>`;
}

function Letters({ letters, vhost }) {
  if (letters === null) return "dropped";
  if (!letters.exists) {
    return html`dropped: exchange '${letters.exchange}' does not exist`;
  }
  return html`<${ExchangeLink} vhost=${vhost} name=${letters.exchange} /> by${" "}
    <code>${letters.routing_key}</code> to ${letters.queues.length ? "" : "no queue"}
    ${letters.queues.map(
      (name, at) => html`${at > 0 && ", "}<a key=${name}
        href=${to("queues", vhost, name)}>${name}</a>`,
    )}`;
}

function Queues({ of, total, vhost }) {
  return html`<${Section} id="explained-queues" title="Queues">
    <${Rows} label="Queues that get it" empty="No queue gets it."
      heads=${["Queue", "Type", "Ready", "Consumers", "Outcome", "What happens", "Dead letters"]}
      rows=${of.map((each) => [
        html`<a href=${to("queues", vhost, each.name)}>${each.name}</a>`,
        each.type,
        count(each.messages_ready),
        count(each.consumers),
        html`<${Badge} tone=${BAD.has(each.outcome) ? "bad" : ""}>${each.outcome}</${Badge}>`,
        each.explanation,
        html`<${Letters} letters=${each.dead_letters} vhost=${vhost} />`,
      ])} />
    ${total > of.length && html`<p class="hint">${count(total - of.length)} more get it.</p>`}
  </${Section}>`;
}

function Found({ answer }) {
  return html`<p class=${answer.allowed && answer.routed ? "verdict" : "verdict bad"}
      role="status">${answer.verdict}</p>
    ${
      answer.blocked &&
      html`<p class="problem">Publishers are blocked now: ${answer.blocked}.</p>`
    }
    <${Section} id="explained-permissions" title=${`What '${answer.user}' needs`}>
      <${Rows} label="Permissions" heads=${["Check", "", "Reason"]}
        rows=${answer.permissions.map((row) => [
          row.check,
          html`<${Badge} tone=${row.allowed ? "" : "bad"}>${row.allowed ? "yes" : "no"}</${Badge}>`,
          row.reason,
        ])} />
    </${Section}>
    <${Section} id="explained-route" title="Route">
      ${answer.steps.map(
        (step) => html`<${Step} key=${step.exchange} step=${step} vhost=${answer.vhost} />`,
      )}
    </${Section}>
    <${Queues} of=${answer.queues} total=${answer.queues_total} vhost=${answer.vhost} />`;
}

export function Explain({ names: [, vhost, exchange, key] }) {
  useTitle("Explain");
  const [answer, setAnswer] = useState(null);
  const explain = async (values) => {
    const given = {
      routing_key: values.key,
      payload_bytes: Number(values.size),
      properties: {
        delivery_mode: Number(values.mode),
        ...objectOf(values.properties, "The properties"),
        headers: objectOf(values.headers, "The headers"),
      },
    };
    if (values.user) given.user = values.user;
    const where = `exchanges/${path(values.vhost, values.exchange || DEFAULT)}/explain`;
    setAnswer(await send("POST", where, given));
    return "Nothing was published.";
  };
  return html`<div class="title"><h1>Explain</h1></div>
    <p class="hint">What would happen to a message, without publishing it.</p>
    <${Section} id="message" title="Message">
      <${Form} label="Explain" button="Explain" action=${explain}>
        <${VhostField} given=${vhost} />
        <${Field} label="Exchange" name="exchange" value=${exchange === DEFAULT ? "" : exchange}
          hint="none is the default exchange" />
        <${Field} label="Routing key" name="key" value=${key} />
        <${Field} label="Stored" name="mode" value="2" options=${[
          ["2", "persistent"],
          ["1", "transient"],
        ]} />
        <${Field} label="Size of the body" name="size" type="number" min="0" value="0" required
          hint="in bytes" />
        ${
          has("monitoring") &&
          html`<${Field} label="Publisher" name="user" hint="a user; none is yourself" />`
        }
        <${Field} label="Headers" name="headers" area hint='as JSON: {"tenant": "acme"}' />
        <${Field} label="Properties" name="properties" area hint='as JSON: {"expiration": "60000"}'
        />
      </${Form}>
    </${Section}>
    ${answer && html`<${Found} answer=${answer} />`}`;
}
