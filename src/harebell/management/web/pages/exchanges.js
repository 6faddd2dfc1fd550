// All exchanges, and a form for a new one.
import { useState } from "preact/hooks";
import { path, send } from "../lib/api.js";
import { rate } from "../lib/format.js";
import { Choice, Field, Form, objectOf } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Badge, Fold } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { useStore } from "../lib/store.js";
import { Table } from "../lib/table.js";
import { useTitle } from "../lib/title.js";
import { listed, vhost } from "../lib/vhosts.js";
import { ExchangeLink } from "./bindings.js";
import { VhostField } from "./queues.js";

const FIELDS = [
  "name",
  "vhost",
  "type",
  "durable",
  "auto_delete",
  "internal",
  "policy",
  "message_stats.publish_in_details.rate",
  "message_stats.publish_out_details.rate",
].join(",");

export function ExchangeBadges({ exchange }) {
  return html`<${Badge}>${exchange.type}</${Badge}>
    ${!exchange.durable && html`<${Badge} title="gone after a restart">transient</${Badge}>`}
    ${
      exchange.auto_delete &&
      html`<${Badge}
      title="deleted with its last binding">auto-delete</${Badge}>`
    }
    ${exchange.internal && html`<${Badge} title="clients cannot publish to it">internal</${Badge}>`}
    ${
      exchange.policy &&
      html`<${Badge}
      title="the policy in force">${exchange.policy}</${Badge}>`
    }`;
}

const COLUMNS = [
  {
    label: "Name",
    sort: "name",
    width: "minmax(150px, 3fr)",
    cell: (row) => html`<${ExchangeLink} vhost=${row.vhost} name=${row.name} />`,
  },
  { label: "Vhost", sort: "vhost", wide: true, cell: (row) => row.vhost },
  {
    label: "Features",
    sort: "type",
    width: "minmax(140px, 2fr)",
    cell: (row) => html`<${ExchangeBadges} exchange=${row} />`,
  },
  {
    label: "In/s",
    sort: "message_stats.publish_in_details.rate",
    number: true,
    wide: true,
    cell: (row) => rate(row.message_stats?.publish_in_details?.rate),
  },
  {
    label: "Out/s",
    sort: "message_stats.publish_out_details.rate",
    number: true,
    wide: true,
    cell: (row) => rate(row.message_stats?.publish_out_details?.rate),
  },
];

// The exchange types that the broker has.
function useTypes() {
  const { data } = usePoll("overview?columns=exchange_types.name", { every: 60000 });
  const names = (data?.exchange_types ?? []).map(({ name }) => name);
  return names.length ? names : ["direct", "fanout", "topic", "headers"];
}

function NewExchange({ onMade }) {
  const types = useTypes();
  const make = async ({ vhost: where, name, type, durable, arguments: given }) => {
    await send("PUT", `exchanges/${path(where, name)}`, {
      type,
      durable: durable === "true",
      arguments: objectOf(given, "The arguments"),
    });
    onMade();
    return `Exchange '${name}' is there.`;
  };
  return html`<${Fold} title="New exchange">
    <${Form} label="New exchange" button="Declare" action=${make}>
      <${VhostField} />
      <${Field} label="Name" name="name" required />
      <${Choice} label="Type" name="type" value="direct" options=${types} />
      <${Field} label="After a restart" name="durable" value="true"
        options=${[
          ["true", "still there (durable)"],
          ["false", "gone (transient)"],
        ]} />
      <${Field} label="Arguments" name="arguments" area
        hint='as JSON: {"alternate-exchange": "unrouted"}' />
    </${Form}></${Fold}>`;
}

export function Exchanges() {
  useTitle("Exchanges");
  const chosen = useStore(vhost);
  const [round, setRound] = useState(0);
  return html`<div class="title"><h1>Exchanges</h1></div>
    <${Table} label="Exchanges" where=${listed("exchanges", chosen)} columns=${COLUMNS}
      fields=${FIELDS} round=${round} />
    <${NewExchange} onMade=${() => setRound(round + 1)} />`;
}
