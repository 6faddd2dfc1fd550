// Messages that wait until a time, in a delaying exchange or for their retry, those that are due
// first before the others: each can be released or cancelled.
import { useState } from "preact/hooks";
import { send } from "../lib/api.js";
import { Confirm } from "../lib/confirm.js";
import { bytes, count, dateTime } from "../lib/format.js";
import { html } from "../lib/html.js";
import { lines } from "../lib/lines.js";
import { Problem, Rows, Section } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { Opened } from "./messages.js";

const SHOWN = 100;
const BODY_BYTES = 50000;
const HEADS = ["Offset", "Due", "Routing key", "Size", "", ""];

function Release({ where, offset, after }) {
  const [error, setError] = useState(null);
  const release = async () => {
    try {
      await send("POST", `${where}/${offset}/release`);
      setError(null);
      after();
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<button type="button" class="quiet" onClick=${release}>Release</button>
    <${Problem} error=${error} />`;
}

// `where` is the path of the list; `total` says how many wait in all.
export function Waiting({ where, what, total, vhost, queue }) {
  const query = new URLSearchParams({ limit: SHOWN, truncate: BODY_BYTES, exact: true });
  const { data, error, refresh } = usePoll(`${where}?${query}`, { load: lines });
  const [opened, setOpened] = useState(null);
  const message = data?.find(({ offset }) => offset === opened);
  return html`<${Section} id="waiting" title=${what}>
    <${Problem} error=${error} />
    ${
      data &&
      html`<${Rows} label=${what} heads=${HEADS} empty="No message waits."
        keys=${data.map(({ offset }) => offset)}
        rows=${data.map((each) => [
          html`<button type="button" class="quiet" aria-pressed=${each.offset === opened}
            onClick=${() => setOpened(each.offset === opened ? null : each.offset)}>${count(
              each.offset,
            )}</button>`,
          dateTime(Date.parse(each.due)),
          html`<code>${each.routing_key}</code>`,
          bytes(each.payload_bytes),
          html`<${Release} where=${where} offset=${each.offset} after=${refresh} />`,
          html`<${Confirm} button="Cancel" tone="quiet" title=${`Cancel message ${each.offset}?`}
            text=${`The message with the routing key '${each.routing_key}' will be gone.`}
            where=${`${where}/${each.offset}`} after=${refresh} />`,
        ])} />`
    }
    ${
      data?.length < total &&
      data.length === SHOWN &&
      html`<p class="hint">The first ${SHOWN} of ${count(total)}.</p>`
    }
    ${
      message &&
      html`<${Opened} key=${opened} message=${message} vhost=${vhost} queue=${queue} />`
    }
  </${Section}>`;
}
