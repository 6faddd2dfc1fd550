// All exchanges, and a form for a new one.
import { useState } from "preact/hooks";
import { path } from "../lib/api.js";
import { BulkBar } from "../lib/bulk.js";
import { rate } from "../lib/format.js";
import { Choice } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Badge } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { useStore } from "../lib/store.js";
import { Table, figure, useSelection } from "../lib/table.js";
import { useTitle } from "../lib/title.js";
import { listed, vhost } from "../lib/vhosts.js";
import { DEFAULT_EXCHANGE, ExchangeLink, exchangeName } from "./bindings.js";
import { EXCHANGE_ACTIONS } from "./list-actions.js";
import { Declaration, Favourites, starsOf } from "./queues.js";

const FIELDS =
  "name,vhost,type,durable,auto_delete,internal,policy,message_stats.publish_in_details.rate," +
  "message_stats.publish_out_details.rate";

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
  starsOf((row) => ["exchanges", row.vhost, row.name || DEFAULT_EXCHANGE]),
  {
    label: "Name",
    sort: "name",
    fixed: true,
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
  figure("In/s", "message_stats.publish_in_details.rate", rate, { wide: true }),
  figure("Out/s", "message_stats.publish_out_details.rate", rate, { wide: true }),
];

// The exchange types that the broker has.
function useTypes() {
  const { data } = usePoll("overview?columns=exchange_types.name", { every: 60000 });
  const names = (data?.exchange_types ?? []).map(({ name }) => name);
  return names.length ? names : ["direct", "fanout", "topic", "headers"];
}

const withType = (type, given) => ({ type, arguments: given });

export function Exchanges() {
  useTitle("Exchanges");
  const chosen = useStore(vhost);
  const types = useTypes();
  const [round, setRound] = useState(0);
  const selection = useSelection(
    ({ vhost: where, name }) => path(where, name),
    ({ name }) => exchangeName(name),
  );
  return html`<div class="title"><h1>Exchanges</h1></div>
    <${Favourites} of="exchanges" />
    <${BulkBar} what="exchange" selection=${selection} actions=${EXCHANGE_ACTIONS}
      onDone=${() => setRound(round + 1)} />
    <${Table} label="Exchanges" name="exchanges" selection=${selection}
      where=${listed("exchanges", chosen)} columns=${COLUMNS} fields=${FIELDS} round=${round} />
    <${Declaration} kind="exchange" body=${withType} onMade=${() => setRound(round + 1)}
      hint='as JSON: {"alternate-exchange": "unrouted"}'>
      <${Choice} label="Type" name="type" value="direct" options=${types} />
    </${Declaration}>`;
}
