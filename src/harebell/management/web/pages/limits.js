// Limits of vhosts and of users.
import { path, send } from "../lib/api.js";
import { Confirm } from "../lib/confirm.js";
import { empty } from "../lib/empty.js";
import { count } from "../lib/format.js";
import { Field, Form } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Fold, Listing } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { useTitle } from "../lib/title.js";

const KINDS = {
  "vhost-limits": {
    title: "Limits of vhosts",
    of: "vhost",
    names: ["max-connections", "max-queues"],
  },
  "user-limits": {
    title: "Limits of users",
    of: "user",
    names: ["max-connections", "max-channels"],
  },
};

function Kind({ kind }) {
  const { title, of, names } = KINDS[kind];
  const { data, error, refresh } = usePoll(kind);
  const set = async ({ object, limit, most }) => {
    await send("PUT", `${kind}/${path(object, limit)}`, { value: Number(most) });
    refresh();
    return `${limit} of '${object}' is ${count(Number(most))}.`;
  };
  const limits = (data ?? []).flatMap((each) =>
    Object.entries(each.value).map(([limit, most]) => ({ name: each[of], limit, most })),
  );
  const rows = limits.map(({ name, limit, most }) => [
    name,
    limit,
    count(most),
    html`<${Confirm} button="Clear" tone="quiet"
      title=${`Take the limit from ${of} '${name}'?`}
      text=${`${limit} of '${name}' is unlimited then.`}
      where=${`${kind}/${path(name, limit)}`} after=${refresh} />`,
  ]);
  const keys = limits.map(({ name, limit }) => path(name, limit));
  return html`<${Listing} id=${kind} title=${title} data=${data} error=${error} rows=${rows}
      empty=${empty(kind)} keys=${keys} heads=${["Name", "Limit", "Most", ""]}>
    <${Fold} title="Set a limit">
      <${Form} label=${`Set a limit of a ${of}`} button="Set" action=${set}>
        <${Field} label=${of === "vhost" ? "Vhost" : "User"} name="object" required />
        <${Field} label="Limit" name="limit" value=${names[0]} options=${names} />
        <${Field} label="Most" name="most" type="number" min="-1" required
          hint="-1 is no limit" />
      </${Form}></${Fold}>
  </${Listing}>`;
}

export function Limits() {
  useTitle("Limits");
  return html`<div class="title"><h1>Limits</h1></div>
    <${Kind} kind="vhost-limits" /><${Kind} kind="user-limits" />`;
}
