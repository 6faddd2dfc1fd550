// All vhosts, and a form for a new one.
import { useMemo, useState } from "preact/hooks";
import { path, send } from "../lib/api.js";
import { Confirm } from "../lib/confirm.js";
import { count, rate } from "../lib/format.js";
import { Field, Form } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Fold } from "../lib/pieces.js";
import { has } from "../lib/session.js";
import { Table, figure } from "../lib/table.js";
import { useTitle } from "../lib/title.js";

function columns(onDeleted) {
  const every = [
    { label: "Name", sort: "name", width: "minmax(120px, 2fr)", cell: (row) => row.name },
    {
      label: "Description",
      width: "minmax(120px, 2fr)",
      wide: true,
      cell: (row) => row.description,
    },
    {
      label: "Default type",
      wide: true,
      width: "minmax(100px, 1fr)",
      cell: (row) => row.default_queue_type || "classic",
    },
    { label: "Queues", sort: "queues", number: true, cell: (row) => count(row.queues) },
    figure("Ready", "messages_ready", count),
    {
      label: "In/s",
      wide: true,
      number: true,
      cell: (row) => rate(row.message_stats?.publish_details?.rate),
    },
  ];
  const remove = {
    label: "Delete",
    wide: true,
    number: true,
    cell: (row) => html`<${Confirm} button="Delete" name=${row.name} tone="quiet"
      title=${`Delete vhost '${row.name}'?`}
      text=${`${count(row.queues)} queues with ${count(row.messages)} messages will be gone, and
        all connections to the vhost are closed.`}
      where=${`vhosts/${path(row.name)}`} after=${onDeleted} />`,
  };
  return has("administrator") ? [...every, remove] : every;
}

export function Vhosts() {
  useTitle("Vhosts");
  const [round, setRound] = useState(0);
  const next = () => setRound((number) => number + 1);
  const shown = useMemo(() => columns(next), []);
  const add = async ({ name, description, type }) => {
    await send("PUT", `vhosts/${path(name)}`, { description, default_queue_type: type });
    next();
    return `Vhost '${name}' is there.`;
  };
  return html`<div class="title"><h1>Vhosts</h1></div>
    <${Table} label="Vhosts" where="vhosts" columns=${shown} round=${round}
      keyed=${({ name }) => name} />
    ${
      has("administrator") &&
      html`<${Fold} title="New vhost"><${Form} label="New vhost" button="Add" action=${add} clear>
        <${Field} label="Name" name="name" required />
        <${Field} label="Description" name="description" />
        <${Field} label="Type of its queues" name="type" value="classic"
          options=${["classic", "quorum", "stream"]} />
      </${Form}></${Fold}>`
    }`;
}
