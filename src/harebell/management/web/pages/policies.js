// Policies and operator policies: settings for queues and exchanges whose names match a pattern.
import { useEffect, useRef, useState } from "preact/hooks";
import { path, send } from "../lib/api.js";
import { Arguments, SETTINGS } from "../lib/arguments.js";
import { Confirm } from "../lib/confirm.js";
import { empty } from "../lib/empty.js";
import { count, value } from "../lib/format.js";
import { Field, Form, objectOf } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Fold, Listing, Problem, Rows } from "../lib/pieces.js";
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

// What a form says of a policy, for the broker.
const bodyOf = (values) => ({
  pattern: values.pattern,
  definition: objectOf(values.definition, "The definition"),
  priority: Number(values.priority),
  "apply-to": values.apply,
});

// The policy of a queue or an exchange, and its settings together with those of the other kind.
const said = ({ policy, definition }) =>
  html`${policy || "no policy"}${Object.entries(definition).map(
    ([key, setting]) => html`<div key=${key}><code>${key}: ${value(setting)}</code></div>`,
  )}`;

// Which queues and exchanges would have another policy.
function Preview({ kind }) {
  const place = useRef(null);
  const [state, setState] = useState({ found: null, error: null });
  const look = async () => {
    const form = place.current.closest("form");
    if (!form.reportValidity()) return;
    const values = Object.fromEntries(new FormData(form));
    try {
      const where = `${kind}/${path(values.vhost, values.name)}/preview`;
      setState({ found: await send("POST", where, bodyOf(values)), error: null });
    } catch (error) {
      setState({ found: null, error });
    }
  };
  const { found, error } = state;
  return html`<div class="field wide" ref=${place}>
    <div class="buttons"><button type="button" class="quiet" onClick=${look}>Preview</button>
      <span role="status" class="done">${found && `It would change ${count(found.changed)}.`}</span>
    </div>
    <${Problem} error=${error} />
    ${
      found?.changes.length > 0 &&
      html`<div class="preview"><${Rows} label="What would change"
        heads=${["", "Name", "Now", "Then"]}
        rows=${found.changes.map((each) => [
          each.kind,
          each.name,
          said(each.before),
          said(each.after),
        ])} /></div>`
    }
  </div>`;
}

// A form for a new policy, or for one that is there.
function PolicyForm({ kind, policy, label, refresh, onEnd }) {
  const { one, apply } = RULES[kind];
  const place = useRef(null);
  useEffect(() => {
    if (policy) place.current.querySelector('input[name="pattern"]').focus();
  }, []);
  const set = async (values) => {
    await send("PUT", `${kind}/${path(values.vhost, values.name)}`, bodyOf(values));
    refresh();
    onEnd?.();
    return `The ${one} '${values.name}' is in force.`;
  };
  const fixed = policy ? { readonly: true } : {};
  return html`<div ref=${place}><${Form} label=${label} button="Set" action=${set}>
    ${
      policy
        ? html`<${Field} label="Vhost" name="vhost" value=${policy.vhost} readonly />`
        : html`<${VhostField} />`
    }
    <${Field} label="Name" name="name" required value=${policy?.name} ...${fixed} />
    <${Field} label="Pattern" name="pattern" required value=${policy?.pattern}
      hint="of names: ^orders[.]" />
    <${Field} label="Applies to" name="apply" value=${policy?.["apply-to"] ?? "queues"}
      options=${apply} />
    <${Field} label="Priority" name="priority" type="number" value=${policy?.priority ?? "0"}
      required hint="the highest that matches is in force" />
    <${Arguments} known=${SETTINGS} label="Settings" name="definition" required
      value=${policy && JSON.stringify(policy.definition, null, 2)}
      hint='as JSON: {"max-length": 1000, "dead-letter-exchange": "dead"}' />
    <${Preview} kind=${kind} />
  </${Form}></div>`;
}

function Kind({ kind }) {
  const { title, tag, one } = RULES[kind];
  const button = `Set ${one.startsWith("o") ? "an" : "a"} ${one}`;
  const { data, error, refresh } = usePoll(listed(kind, useStore(vhost)));
  const [edited, setEdited] = useState(null);
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
      ? html`<div class="buttons"><button type="button" class="quiet"
          aria-label=${`Edit ${each.name}`} onClick=${() => setEdited(each)}>Edit</button>
        <${Clear} kind=${kind} policy=${each} refresh=${refresh} /></div>`
      : "",
  ]);
  return html`<${Listing} id=${kind} title=${title} data=${data} error=${error} rows=${rows}
      empty=${empty(kind)} keys=${data?.map((each) => path(each.vhost, each.name))}
      heads=${["Name", "Vhost", "Pattern", "Applies to", "Priority", "Settings", ""]}>
    ${
      has(tag) &&
      html`${
        edited &&
        html`<section class="edited" key=${path(edited.vhost, edited.name)}
          aria-label=${`Edit ${one}`}>
          <h3>Edit ${one} '${edited.name}'</h3>
          <${PolicyForm} kind=${kind} policy=${edited} label=${`Edit ${edited.name}`}
            refresh=${refresh} onEnd=${() => setEdited(null)} />
          <button type="button" class="quiet" onClick=${() => setEdited(null)}>Cancel</button>
        </section>`
      }<${Fold} title=${button}>
        <${PolicyForm} kind=${kind} label=${button} refresh=${refresh} /></${Fold}>`
    }
  </${Listing}>`;
}

export function Policies() {
  useTitle("Policies");
  return html`<div class="title"><h1>Policies</h1></div>
    <${Kind} kind="policies" /><${Kind} kind="operator-policies" />`;
}
