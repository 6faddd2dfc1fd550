// All users, and a form for a new one.
import { useState } from "preact/hooks";
import { path, send } from "../lib/api.js";
import { Field, Form } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Badge, Fold } from "../lib/pieces.js";
import { to } from "../lib/router.js";
import { Table } from "../lib/table.js";
import { useTitle } from "../lib/title.js";

const COLUMNS = [
  {
    label: "Name",
    sort: "name",
    width: "minmax(150px, 2fr)",
    cell: (row) => html`<a href=${to("users", row.name)}>${row.name}</a>`,
  },
  {
    label: "Tags",
    width: "minmax(120px, 2fr)",
    cell: (row) => (row.tags ?? []).map((tag) => html`<${Badge} key=${tag}>${tag}</${Badge}> `),
  },
  {
    label: "Logs in from",
    wide: true,
    cell: (row) => (row.loopback_only ? "this machine alone" : "anywhere"),
  },
];

const TAGS_HINT = "with commas: management, policymaker, monitoring, administrator";

export function UserFields({ tags = "" }) {
  return html`<${Field} label="Password" name="password" type="password" required
      autocomplete="new-password" />
    <${Field} label="Tags" name="tags" value=${tags} hint=${TAGS_HINT} />`;
}

export function Users() {
  useTitle("Users");
  const [round, setRound] = useState(0);
  const add = async ({ name, password, tags }) => {
    await send("PUT", `users/${path(name)}`, { password, tags });
    setRound(round + 1);
    return `User '${name}' is there, and has no permissions yet.`;
  };
  return html`<div class="title"><h1>Users</h1></div>
    <${Table} label="Users" where="users" columns=${COLUMNS} fields="name,tags,loopback_only"
      round=${round} />
    <${Fold} title="New user"><${Form} label="New user" button="Add" action=${add} clear>
      <${Field} label="Name" name="name" required />
      <${UserFields} />
    </${Form}></${Fold}>`;
}
