// A message for any exchange, published once or several times.
import { useState } from "preact/hooks";
import { path, send } from "../lib/api.js";
import { count } from "../lib/format.js";
import { Field, Form } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Listing, Section } from "../lib/pieces.js";
import { useTitle } from "../lib/title.js";
import { exchangeName } from "./bindings.js";
import { MessageFields, messageOf } from "./publish.js";
import { VhostField } from "./queues.js";

const SHOWN = 20;

export function Compose() {
  useTitle("Publish");
  const [sent, setSent] = useState([]);
  const publish = async (values) => {
    const where = `exchanges/${path(values.vhost, values.exchange || "amq.default")}/publish`;
    const message = messageOf(values);
    const times = Number(values.times);
    let routed = 0;
    for (let number = 0; number < times; number += 1) {
      const answer = await send("POST", where, message);
      routed += answer.routed ? 1 : 0;
    }
    const line = [
      new Date().toLocaleTimeString("en-GB"),
      exchangeName(values.exchange),
      values.key,
      count(times),
      count(routed),
    ];
    setSent((lines) => [line, ...lines].slice(0, SHOWN));
    return routed === times
      ? `${count(times)} published and routed.`
      : `${count(times)} published, ${count(times - routed)} of them reached no queue.`;
  };
  return html`<div class="title"><h1>Publish</h1></div>
    <${Section} id="message" title="Message">
      <${Form} label="Message" button="Publish" action=${publish}>
        <${VhostField} />
        <${Field} label="Exchange" name="exchange" hint="none is the default exchange" />
        <${MessageFields} />
        <${Field} label="How often" name="times" type="number" min="1" max="1000" value="1"
          required />
      </${Form}>
    </${Section}>
    <${Listing} id="sent" title="Sent from this page" rows=${sent} empty="Nothing yet."
        heads=${["Time", "Exchange", "Routing key", "Published", "Routed"]} />`;
}
