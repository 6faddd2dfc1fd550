// The bindings of a queue or an exchange, and forms to add and delete them.
import { path, send } from "../lib/api.js";
import { Confirm } from "../lib/confirm.js";
import { value } from "../lib/format.js";
import { Field, Form, objectOf } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Fold, Problem, Rows, Section } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";

// What addresses have for the default exchange, whose name is empty.
export const DEFAULT_EXCHANGE = "amq.default";

export function exchangeName(name) {
  return name === "" ? "(default exchange)" : name;
}

export function ExchangeLink({ vhost, name }) {
  const address = to("exchanges", vhost, name || DEFAULT_EXCHANGE);
  return html`<a href=${address}>${exchangeName(name)}</a>`;
}

function DestinationLink({ binding }) {
  if (binding.destination_type === "exchange") {
    return html`<${ExchangeLink} vhost=${binding.vhost} name=${binding.destination} />`;
  }
  const { vhost, destination } = binding;
  return html`<a href=${to("queues", vhost, destination)}>${destination}</a>`;
}

function placeOf({ vhost, source, destination, destination_type: type, properties_key: key }) {
  const kind = type === "queue" ? "q" : "e";
  const ends = `${path(vhost)}/e/${path(source || DEFAULT_EXCHANGE)}/${kind}/${path(destination)}`;
  return `bindings/${ends}/${path(key)}`;
}

function Unbind({ binding, refresh }) {
  // The default exchange binds every queue by its name, for good.
  if (binding.source === "") return null;
  return html`<${Confirm} button="Unbind" tone="quiet" title="Delete this binding?"
    text=${`'${binding.source}' will no longer route to '${binding.destination}' by
      '${binding.routing_key}'.`}
    where=${placeOf(binding)} after=${refresh} />`;
}

const shownArguments = (binding) =>
  Object.entries(binding.arguments ?? {})
    .map(([name, each]) => `${name}=${value(each)}`)
    .join(", ");

// `heads` and `cells` say what stands beside the key: the source, or the destination.
function Bindings({ label, where, head, cell }) {
  const { data, error, refresh } = usePoll(where);
  return html`<${Problem} error=${error} />
    ${
      data &&
      html`<${Rows} label=${label} heads=${[head, "Binding key", "Arguments", ""]}
      keys=${data.map(placeOf)}
      rows=${data.map((each) => [
        cell(each),
        html`<code>${each.routing_key}</code>`,
        shownArguments(each),
        html`<${Unbind} binding=${each} refresh=${refresh} />`,
      ])} />`
    }`;
}

export function QueueBindings({ vhost, name }) {
  const where = `queues/${path(vhost, name)}/bindings`;
  const bind = async ({ source, key, arguments: given }) => {
    await send("POST", `bindings/${path(vhost)}/e/${path(source)}/q/${path(name)}`, {
      routing_key: key,
      arguments: objectOf(given, "The arguments"),
    });
    return `'${source}' routes to '${name}' by '${key}'.`;
  };
  return html`<${Section} id="bindings" title="Bindings to this queue">
    <${Bindings} label="Bindings" where=${where} head="From exchange"
      cell=${(each) => html`<${ExchangeLink} vhost=${vhost} name=${each.source} />`} />
    <${Fold} title="Bind"><${Form} label="Bind" button="Bind" action=${bind}>
      <${Field} label="Exchange" name="source" required />
      <${Field} label="Binding key" name="key" />
      <${Field} label="Arguments" name="arguments" area
        hint="as JSON; for exchanges of type headers" />
    </${Form}></${Fold}>
  </${Section}>`;
}

export function ExchangeBindings({ vhost, name }) {
  const where = `exchanges/${path(vhost, name || DEFAULT_EXCHANGE)}/bindings`;
  const bind = async ({ kind, destination, key, arguments: given }) => {
    await send("POST", `bindings/${path(vhost)}/e/${path(name)}/${kind}/${path(destination)}`, {
      routing_key: key,
      arguments: objectOf(given, "The arguments"),
    });
    return `'${name}' routes to '${destination}' by '${key}'.`;
  };
  return html`<${Section} id="bindings" title="Bindings from this exchange">
      <${Bindings} label="Bindings from this exchange" where=${`${where}/source`} head="To"
        cell=${(each) => html`<${DestinationLink} binding=${each} />`} />
      ${
        name !== "" &&
        html`<${Fold} title="Bind"><${Form} label="Bind" button="Bind" action=${bind}>
        <${Field} label="To a" name="kind" value="q" options=${[
          ["q", "queue"],
          ["e", "exchange"],
        ]} />
        <${Field} label="Name" name="destination" required />
        <${Field} label="Binding key" name="key" />
        <${Field} label="Arguments" name="arguments" area
          hint="as JSON; for exchanges of type headers" />
      </${Form}></${Fold}>`
      }
    </${Section}>
    ${
      name !== "" &&
      html`<${Section} id="to-this" title="Bindings to this exchange">
      <${Bindings} label="Bindings to this exchange" where=${`${where}/destination`}
        head="From exchange"
        cell=${(each) => html`<${ExchangeLink} vhost=${vhost} name=${each.source} />`} />
    </${Section}>`
    }`;
}
