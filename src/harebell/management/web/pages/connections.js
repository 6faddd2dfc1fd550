// All connections.
import { useState } from "preact/hooks";
import { path, send } from "../lib/api.js";
import { BulkBar } from "../lib/bulk.js";
import { empty } from "../lib/empty.js";
import { bytes, count } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Badge } from "../lib/pieces.js";
import { to } from "../lib/router.js";
import { Table, figure, useSelection } from "../lib/table.js";
import { useTitle } from "../lib/title.js";

const FIELDS =
  "name,user,vhost,state,protocol,ssl,channels,user_provided_name,recv_oct_details.rate," +
  "send_oct_details.rate";

// The name that the client gave, before the addresses.
function ConnectionLink({ connection }) {
  const given = connection.user_provided_name;
  return html`<a href=${to("connections", connection.name)}>${given || connection.name}</a>${
    given ? html` <span class="hint">${connection.name}</span>` : null
  }`;
}

export function StateBadge({ state }) {
  return html`<${Badge} tone=${state === "running" ? "" : "bad"}>${state}</${Badge}>`;
}

const COLUMNS = [
  {
    label: "Name",
    sort: "user_provided_name",
    fixed: true,
    width: "minmax(170px, 3fr)",
    cell: (row) => html`<${ConnectionLink} connection=${row} />`,
  },
  { label: "User", sort: "user", cell: (row) => row.user },
  { label: "Vhost", sort: "vhost", wide: true, cell: (row) => row.vhost },
  { label: "State", sort: "state", cell: (row) => html`<${StateBadge} state=${row.state} />` },
  {
    label: "Protocol",
    sort: "protocol",
    wide: true,
    width: "minmax(100px, 1fr)",
    cell: (row) => `${row.protocol}${row.ssl ? ", TLS" : ""}`,
  },
  figure("Channels", "channels", count, { wide: true, width: "minmax(80px, 1fr)" }),
  figure("In/s", "recv_oct_details.rate", bytes, { wide: true }),
  figure("Out/s", "send_oct_details.rate", bytes, { wide: true }),
];

const ACTIONS = [
  {
    label: "Close",
    heads: ["Name", "Address", "User", "Vhost"],
    preview: (row) => [row.user_provided_name || row.name, row.name, row.user, row.vhost],
    text: () => "Their clients get 320 CONNECTION_FORCED. Most clients connect again.",
    run: async ({ name }) => {
      await send("DELETE", `connections/${path(name)}`);
      return "closed";
    },
  },
];

export function Connections() {
  useTitle("Connections");
  const [round, setRound] = useState(0);
  const selection = useSelection(({ name }) => name);
  return html`<div class="title"><h1>Connections</h1></div>
    <${BulkBar} what="connection" selection=${selection} actions=${ACTIONS}
      onDone=${() => setRound(round + 1)} />
    <${Table} label="Connections" name="connections" where="connections" columns=${COLUMNS}
      fields=${FIELDS} selection=${selection} round=${round}
      sorted=${{ by: "user_provided_name", reverse: false }}
      empty=${empty("connections")} />`;
}
