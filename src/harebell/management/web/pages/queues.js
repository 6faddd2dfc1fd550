// All queues, and a form for a new one.
import { useState } from "preact/hooks";
import { path, send } from "../lib/api.js";
import { ARGUMENTS, Arguments } from "../lib/arguments.js";
import { BulkBar } from "../lib/bulk.js";
import { empty } from "../lib/empty.js";
import { bytes, count, rate, seconds } from "../lib/format.js";
import { Choice, Field, Form, objectOf } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { favourites, isFavourite, setFavourite } from "../lib/kept.js";
import { Badge, Fold } from "../lib/pieces.js";
import { to } from "../lib/router.js";
import { NameLink, Spark } from "../lib/spark.js";
import { useStore } from "../lib/store.js";
import { Table, figure, useSelection } from "../lib/table.js";
import { useTitle } from "../lib/title.js";
import { listed, useVhosts, vhost } from "../lib/vhosts.js";
import { QUEUE_ACTIONS } from "./list-actions.js";

const FIELDS =
  "name,vhost,type,durable,auto_delete,exclusive,policy,messages_ready," +
  "messages_unacknowledged,messages,consumers,message_stats.publish_details.rate," +
  "message_stats.deliver_get_details.rate";
// Samples for the line of each queue.
const SAMPLES = "lengths_age=600&lengths_incr=30";

export function QueueBadges({ queue }) {
  return html`<${Badge}>${queue.type}</${Badge}>
    ${!queue.durable && html`<${Badge} title="gone after a restart">transient</${Badge}>`}
    ${queue.exclusive && html`<${Badge} title="of one connection">exclusive</${Badge}>`}
    ${
      queue.auto_delete &&
      html`<${Badge}
      title="deleted with its last consumer">auto-delete</${Badge}>`
    }
    ${
      queue.policy &&
      html`<${Badge}
      title=${`the policy in force: ${queue.policy}`}>${queue.policy}</${Badge}>`
    }`;
}

// Whether messages wait that no consumer takes.
function State({ queue }) {
  if (queue.type === "stream" || !queue.messages_ready) return queue.state;
  if (!queue.consumers) {
    return html`<${Badge} tone="bad" title="messages wait, and no consumer is there"
      >no consumers</${Badge}>`;
  }
  return queue.consumer_utilisation === 0
    ? html`<${Badge} tone="warn" title="messages wait: each consumer holds as many as it may"
      >consumers full</${Badge}>`
    : queue.state;
}

function Trend({ queue }) {
  const perSecond = Math.round((queue.messages_trend ?? 0) * 10) / 10;
  const sign = perSecond > 0 ? "+" : "";
  return html`<${Spark} samples=${queue.messages_details?.samples} />
    <span title="messages more per second over the last 10 minutes"
      >${sign}${rate(perSecond)}</span>`;
}

function Favourite({ names }) {
  useStore(favourites());
  const on = isFavourite(names);
  return html`<button type="button" class="star" aria-pressed=${on}
    aria-label=${`Favourite ${names.at(-1)}`} onClick=${() => setFavourite(names, !on)}
    ><span aria-hidden="true">${on ? "★" : "☆"}</span></button>`;
}

// The column of stars. `namesOf(row)` are those in the address of the row's page.
export const starsOf = (namesOf) => ({
  label: "Favourite",
  key: "star",
  width: "20px",
  wide: true,
  head: html`<span class="unseen">Favourite</span>`,
  cell: (row) => html`<${Favourite} names=${namesOf(row)} />`,
});

export function Favourites({ of }) {
  const chosen = useStore(favourites()).filter(([kind]) => kind === of);
  if (!chosen.length) return null;
  return html`<p class="favourites">Favourites: ${chosen.map(
    (names, at) => html`${at ? ", " : ""}<${NameLink} key=${names.join("\n")}
      href=${to(...names)} name=${names.at(-1)} />`,
  )}</p>`;
}

const COLUMNS = [
  starsOf((row) => ["queues", row.vhost, row.name]),
  {
    label: "Name",
    sort: "name",
    fixed: true,
    width: "minmax(110px, 3fr)",
    cell: (row) => html`<${NameLink} href=${to("queues", row.vhost, row.name)} name=${row.name} />`,
  },
  {
    label: "Vhost",
    sort: "vhost",
    width: "minmax(44px, 0.7fr)",
    wide: true,
    cell: (row) => row.vhost,
  },
  {
    label: "Features",
    wide: true,
    width: "minmax(150px, 1.8fr)",
    cell: (row) => html`<${QueueBadges} queue=${row} />`,
  },
  {
    label: "State",
    wide: true,
    width: "minmax(104px, 1fr)",
    fields: "state,consumer_utilisation",
    cell: (row) => html`<${State} queue=${row} />`,
  },
  figure("Ready", "messages_ready", count, { width: "minmax(56px, 1fr)" }),
  figure("Unacked", "messages_unacknowledged", count, { wide: true, width: "minmax(62px, 1fr)" }),
  figure("Age", "oldest_seconds", seconds, {
    wide: true,
    width: "minmax(56px, 1fr)",
    fields: "oldest_seconds",
  }),
  figure("Size", "message_bytes", bytes, {
    wide: true,
    width: "minmax(64px, 1fr)",
    fields: "message_bytes",
  }),
  figure("Trend", "messages_trend", null, {
    wide: true,
    width: "minmax(116px, 1.2fr)",
    fields: "messages_trend,messages_details.samples",
    cell: (row) => html`<${Trend} queue=${row} />`,
  }),
  figure("In/s", "message_stats.publish_details.rate", rate, { width: "minmax(48px, 1fr)" }),
  figure("Out/s", "message_stats.deliver_get_details.rate", rate, { width: "minmax(48px, 1fr)" }),
  figure("Consumers", "consumers", count, { wide: true, width: "minmax(80px, 1fr)" }),
];

export function VhostField({ given }) {
  const names = useVhosts();
  const chosen = useStore(vhost);
  return html`<${Choice} label="Vhost" name="vhost" value=${given ?? (chosen || "/")}
    options=${names.length ? names : ["/"]} />`;
}

// A form that declares a queue or an exchange; `body(type, given)` has what the type decides.
export function Declaration({ kind, hint, body, onMade, children }) {
  const make = async ({ vhost: where, name, type, durable, arguments: given }) => {
    await send("PUT", `${kind}s/${path(where, name)}`, {
      durable: durable === "true",
      ...body(type, objectOf(given, "The arguments")),
    });
    onMade();
    return `${kind === "queue" ? "Queue" : "Exchange"} '${name}' is there.`;
  };
  const title = `New ${kind}`;
  return html`<${Fold} title=${title}><${Form} label=${title} button="Declare" action=${make}>
    <${VhostField} />
    <${Field} label="Name" name="name" required />
    ${children}
    <${Field} label="After a restart" name="durable" value="true"
      options=${[
        ["true", "still there (durable)"],
        ["false", "gone (transient)"],
      ]} />
    ${
      kind === "queue"
        ? html`<${Arguments} known=${ARGUMENTS} label="Arguments" name="arguments" hint=${hint} />`
        : html`<${Field} label="Arguments" name="arguments" area hint=${hint} />`
    }
  </${Form}></${Fold}>`;
}

const withType = (type, given) => ({ arguments: { "x-queue-type": type, ...given } });

export function Queues() {
  useTitle("Queues");
  const chosen = useStore(vhost);
  const [round, setRound] = useState(0);
  const selection = useSelection(({ vhost: where, name }) => path(where, name));
  return html`<div class="title"><h1>Queues</h1></div>
    <${Favourites} of="queues" />
    <${BulkBar} what="queue" selection=${selection} actions=${QUEUE_ACTIONS}
      onDone=${() => setRound(round + 1)} />
    <${Table} label="Queues" name="queues" selection=${selection} more=${SAMPLES}
      where=${listed("queues", chosen)} columns=${COLUMNS} fields=${FIELDS}
      round=${round} empty=${empty("queues")} />
    <${Declaration} kind="queue" body=${withType} onMade=${() => setRound(round + 1)}
      hint='as JSON: {"x-max-length": 1000, "x-dead-letter-exchange": "dead"}'>
      <${Field} label="Type" name="type" value="classic"
        options=${["classic", "quorum", "stream"]} />
    </${Declaration}>`;
}
