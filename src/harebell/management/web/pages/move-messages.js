// Jobs of the broker that move, copy, remove or retry the messages that a condition selects.
import { useState } from "preact/hooks";
import { send } from "../lib/api.js";
import { Confirm } from "../lib/confirm.js";
import { Field, Form } from "../lib/forms.js";
import { count } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Problem } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";

const VERBS = [
  ["move", "move to another queue"],
  ["copy", "copy to another queue"],
  ["remove", "remove"],
  ["retry", "retry dead letters where they first died"],
];

export function Job({ id }) {
  const { data, error, refresh } = usePoll(`jobs/${id}`, { every: 1000 });
  return html`<${Problem} error=${error} />${
    data &&
    html`<div class="job"><p role="status">
    Job ${data.id} (${data.verb}) is ${data.state}: ${count(data.examined)} examined,
    ${" "}${count(data.selected)} selected, ${count(data.done)} done, ${count(data.left)} left.</p>
    <progress aria-label=${`Job ${data.id}`} max=${data.messages || 1}
      value=${data.ended ? data.messages || 1 : data.examined}></progress>
    ${
      !data.ended &&
      html`<${Confirm} button="Cancel" tone="quiet" title=${`Cancel job ${data.id}?`}
      text=${`What job ${data.id} (${data.verb}) has done stays done; the other messages stay where
        they are.`}
      where=${`jobs/${data.id}`} after=${refresh} />`
    }</div>`
  }`;
}

export function MoveMessages({ where, stream }) {
  const [job, setJob] = useState(null);
  const start = async ({ verb, condition, destination }) => {
    const body = { where: condition };
    if (verb === "move" || verb === "copy") body.to_queue = destination;
    const made = await send("POST", `${where}/${verb}`, body);
    setJob(made?.id ?? null);
    return "The job has begun.";
  };
  return html`<${Form} label="Move messages" button="Begin" action=${start}>
      <${Field} label="What to do" name="verb" options=${stream ? VERBS.slice(1, 2) : VERBS}
        value=${stream ? "copy" : "move"} />
      <${Field} label="To queue" name="destination" hint="to move or copy" />
      <${Field} label="Condition" name="condition" required wide
        hint="such as headers.tenant = 'acme'; true selects all messages" />
    </${Form}>
    ${job !== null && html`<${Job} key=${job} id=${job} />`}`;
}
