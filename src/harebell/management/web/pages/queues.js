// All queues, and a form for a new one.
import { useState } from "preact/hooks";
import { path, send } from "../lib/api.js";
import { empty } from "../lib/empty.js";
import { count, rate } from "../lib/format.js";
import { Choice, Field, Form, objectOf } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Badge, Fold } from "../lib/pieces.js";
import { to } from "../lib/router.js";
import { useStore } from "../lib/store.js";
import { Table, figure } from "../lib/table.js";
import { useTitle } from "../lib/title.js";
import { listed, useVhosts, vhost } from "../lib/vhosts.js";

const FIELDS =
  "name,vhost,type,durable,auto_delete,exclusive,policy,messages_ready," +
  "messages_unacknowledged,messages,consumers,message_stats.publish_details.rate," +
  "message_stats.deliver_get_details.rate";

export function QueueBadges({ queue }) {
  return html`<${Badge}>${queue.type}</${Badge}>
    ${!queue.durable && html`<${Badge} title="gone after a restart">transient</${Badge}>`}
    ${queue.exclusive && html`<${Badge} title="of one connection">exclusive</${Badge}>`}
    ${
      queue.auto_delete &&
      html`<${Badge}
      title="deleted with its last consumer">auto-delete</${Badge}>`
    }
    ${queue.policy && html`<${Badge} title="the policy in force">${queue.policy}</${Badge}>`}`;
}

const COLUMNS = [
  {
    label: "Name",
    sort: "name",
    width: "minmax(150px, 3fr)",
    cell: (row) => html`<a href=${to("queues", row.vhost, row.name)}>${row.name}</a>`,
  },
  {
    label: "Vhost",
    sort: "vhost",
    width: "minmax(60px, 0.8fr)",
    wide: true,
    cell: (row) => row.vhost,
  },
  {
    label: "Features",
    wide: true,
    width: "minmax(140px, 1.6fr)",
    cell: (row) => html`<${QueueBadges} queue=${row} />`,
  },
  figure("Ready", "messages_ready", count),
  figure("Unacked", "messages_unacknowledged", count, { wide: true, width: "minmax(80px, 1fr)" }),
  figure("In/s", "message_stats.publish_details.rate", rate),
  figure("Out/s", "message_stats.deliver_get_details.rate", rate),
  figure("Consumers", "consumers", count, { wide: true, width: "minmax(96px, 1fr)" }),
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
    <${Field} label="Arguments" name="arguments" area hint=${hint} />
  </${Form}></${Fold}>`;
}

const withType = (type, given) => ({ arguments: { "x-queue-type": type, ...given } });

export function Queues() {
  useTitle("Queues");
  const chosen = useStore(vhost);
  const [round, setRound] = useState(0);
  return html`<div class="title"><h1>Queues</h1></div>
    <${Table} label="Queues" where=${listed("queues", chosen)} columns=${COLUMNS} fields=${FIELDS}
      round=${round} empty=${empty("queues")} />
    <${Declaration} kind="queue" body=${withType} onMade=${() => setRound(round + 1)}
      hint='as JSON: {"x-max-length": 1000, "x-dead-letter-exchange": "dead"}'>
      <${Field} label="Type" name="type" value="classic"
        options=${["classic", "quorum", "stream"]} />
    </${Declaration}>`;
}
