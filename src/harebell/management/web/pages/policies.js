// Policies and operator policies: settings for queues and exchanges whose names match a pattern.
import { path, send } from "../lib/api.js";
import { Confirm } from "../lib/confirm.js";
import { empty } from "../lib/empty.js";
import { count, value } from "../lib/format.js";
import { Field, Form, objectOf } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Fold, Listing } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { has } from "../lib/session.js";
import { useStore } from "../lib/store.js";
import { useTitle } from "../lib/title.js";
import { listed, vhost } from "../lib/vhosts.js";
import { VhostField } from "./queues.js";

const APPLY_TO = ["queues", "exchanges", "all", "classic_queues", "quorum_queues", "streams"];
const RULES = {
  policies: { title: "Policies", tag: "policymaker", one: "policy", apply: APPLY_TO },
  "operator-policies": {
    title: "Operator policies",
    tag: "administrator",
    one: "operator policy",
    apply: APPLY_TO.filter((each) => each !== "exchanges" && each !== "all"),
  },
};

function Clear({ kind, policy, refresh }) {
  const { name, vhost: where } = policy;
  return html`<${Confirm} button="Delete" tone="quiet" name=${name}
    title=${`Delete ${RULES[kind].one} '${name}'?`}
    text=${`What matches ${policy.pattern} in vhost '${where}' no longer has its settings.`}
    where=${`${kind}/${path(where, name)}`} after=${refresh} />`;
}

function Kind({ kind }) {
  const { title, tag, one, apply } = RULES[kind];
  const button = `Set ${one.startsWith("o") ? "an" : "a"} ${one}`;
  const { data, error, refresh } = usePoll(listed(kind, useStore(vhost)));
  const set = async (values) => {
    await send("PUT", `${kind}/${path(values.vhost, values.name)}`, {
      pattern: values.pattern,
      definition: objectOf(values.definition, "The definition"),
      priority: Number(values.priority),
      "apply-to": values.apply,
    });
    refresh();
    return `The ${one} '${values.name}' is in force.`;
  };
  const rows = (data ?? []).map((each) => [
    each.name,
    each.vhost,
    html`<code>${each.pattern}</code>`,
    each["apply-to"],
    count(each.priority),
    Object.entries(each.definition).map(
      ([key, setting]) => html`<div key=${key}><code>${key}: ${value(setting)}</code></div>`,
    ),
    has(tag)
      ? html`<${Clear} kind=${kind} policy=${each} refresh=${refresh} />`
      : "",
  ]);
  return html`<${Listing} id=${kind} title=${title} data=${data} error=${error} rows=${rows}
      empty=${empty(kind)} keys=${data?.map((each) => path(each.vhost, each.name))}
      heads=${["Name", "Vhost", "Pattern", "Applies to", "Priority", "Settings", ""]}>
    ${
      has(tag) &&
      html`<${Fold} title=${button}>
        <${Form} label=${button} button="Set" action=${set}>
          <${VhostField} />
          <${Field} label="Name" name="name" required />
          <${Field} label="Pattern" name="pattern" required hint="of names: ^orders[.]" />
          <${Field} label="Applies to" name="apply" value="queues" options=${apply} />
          <${Field} label="Priority" name="priority" type="number" value="0" required
            hint="the highest that matches is in force" />
          <${Field} label="Settings" name="definition" area required
            hint='as JSON: {"max-length": 1000, "dead-letter-exchange": "dead"}' />
        </${Form}></${Fold}>`
    }
  </${Listing}>`;
}

export function Policies() {
  useTitle("Policies");
  return html`<div class="title"><h1>Policies</h1></div>
    <${Kind} kind="policies" /><${Kind} kind="operator-policies" />`;
}
