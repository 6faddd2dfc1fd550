// One message, opened: its headers with their types, its body in the view that suits it, what is
// recorded of its life, and how it is published again.
import { useEffect, useState } from "preact/hooks";
import { get, path, send } from "../lib/api.js";
import { COMPRESSIONS, CHARSETS, look, VIEWS } from "../lib/body/views.js";
import { copyAs, editable, FORMS, word } from "../lib/body/copy-as.js";
import { dataOf } from "../lib/body/data.js";
import { bytes, count, dateTime, value } from "../lib/format.js";
import { Field, Form, useId } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Fold, Members, Problem, Rows } from "../lib/pieces.js";
import { bytesOf } from "../lib/pretty.js";
import { to } from "../lib/router.js";
import { ExchangeLink } from "./bindings.js";
import { MessageFields, messageOf } from "./publish.js";

const SHOWN_CHARACTERS = 50_000;
const SCHEMA_BYTES = 1024 * 1024;
// The most that the API shows of a body that is browsed.
const WHOLE_BYTES = 1048576;

// A choice without a label above it.
function Pick({ label, options, value: chosen, onPick }) {
  return html`<label class="choice">${label}
    <select value=${chosen} onChange=${(event) => onPick(event.currentTarget.value)}>
      ${options.map(
        ([key, text]) => html`<option key=${key} value=${key}
          selected=${key === chosen}>${text}</option>`,
      )}
    </select></label>`;
}

const automatic = (found, options) => [
  ["", found ? `automatic: ${found}` : "automatic"],
  ...options,
];

function Schema({ view, schema, onSchema }) {
  const use = async (values) => {
    const { file } = values;
    if (file?.size > SCHEMA_BYTES) throw new Error(`'${file.name}' is larger than 1 MiB.`);
    const text = file?.size ? await file.text() : values.schema;
    onSchema({ ...schema, [view === "avro" ? "avro" : "proto"]: text, type: values.type ?? "" });
    return text.trim() ? "It is used for all messages of this list." : "There is no schema now.";
  };
  const isAvro = view === "avro";
  return html`<${Form} key=${view} label="Schema" button="Use" action=${use}>
    <${Field} label=${isAvro ? "Avro schema" : "Protobuf schema"} name="schema" area
      value=${isAvro ? schema.avro : schema.proto}
      hint=${isAvro ? "JSON, as a .avsc file has it" : "what a .proto file has, without imports"} />
    <${Field} label="or a file" name="file" type="file" />
    ${
      !isAvro &&
      html`<${Field} label="Message" name="type" value=${schema.type}
        hint="its name in the schema; none is the first" />`
    }
  </${Form}>`;
}

function Body({ message, fetchAll, schema, onSchema }) {
  const [loaded, setLoaded] = useState(null);
  const [asked, setAsked] = useState({ view: "", compression: "", charset: "" });
  const [whole, setWhole] = useState(false);
  const [error, setError] = useState(null);
  const [found, setFound] = useState(null);
  const source = loaded ?? message;
  useEffect(() => {
    let gone = false;
    look(source, { ...asked, schema }).then((seen) => !gone && setFound(seen), setError);
    return () => {
      gone = true;
    };
  }, [source, asked, schema]);
  if (!found) return html`<h4>Body</h4><${Problem} error=${error} />`;
  const pick = (name) => (chosen) => setAsked({ ...asked, [name]: chosen });
  const shown = whole ? found.text : found.text.slice(0, SHOWN_CHARACTERS);
  const there = bytesOf(source.payload, source.payload_encoding);
  const isCut = there < source.payload_bytes;
  const all = async (event) => {
    event.preventDefault();
    try {
      if (isCut) setLoaded(await fetchAll());
      setWhole(true);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  const more = isCut ? fetchAll && there < WHOLE_BYTES : shown !== found.text;
  const known = (names) => names.map((name) => [name, name]);
  return html`<h4>Body</h4>
    <div class="buttons">
      <${Pick} label="View" value=${asked.view} onPick=${pick("view")}
        options=${automatic(!asked.view && VIEWS[found.view], Object.entries(VIEWS))} />
      <${Pick} label="Unpack" value=${asked.compression} onPick=${pick("compression")}
        options=${automatic(
          !asked.compression && found.compression,
          known(["none", ...COMPRESSIONS]),
        )} />
      ${
        ["text", "json"].includes(found.view) &&
        html`<${Pick} label="Charset" value=${asked.charset} onPick=${pick("charset")}
          options=${automatic(!asked.charset && found.charset, known(CHARSETS))} />`
      }
    </div>
    <${Problem} error=${error} />
    ${found.problem && html`<p class="problem" role="status">${found.problem}</p>`}
    ${found.note && html`<p class="hint">${found.note}</p>`}
    ${
      found.compression !== "none" &&
      html`<p class="hint">Unpacked with ${found.compression}: ${bytes(there)} became
        ${" "}${bytes(found.size)}.</p>`
    }
    ${
      (isCut || shown !== found.text) &&
      html`<p class="hint">${
        isCut
          ? `The first ${bytes(there)} of ${count(source.payload_bytes)} bytes. `
          : `The first ${count(shown.length)} of ${count(found.text.length)} characters. `
      }${
        more
          ? html`<a href="#" role="button" onClick=${all}>${
              isCut && source.payload_bytes > WHOLE_BYTES ? "Show 1 MiB" : "Show all of it"
            }</a>`
          : fetchAll && "Get shows all of it."
      }</p>`
    }
    <pre tabindex="0" role="region" aria-label="Body">${shown}</pre>
    ${
      ["avro", "protobuf"].includes(found.view) &&
      html`<${Fold} title="Schema"><${Schema} view=${found.view} schema=${schema}
        onSchema=${onSchema} /></${Fold}>`
    }`;
}

// --- Celery --------------------------------------------------------------------------------------

const TASK = [
  ["id", "Task id"],
  ["argsrepr", "Arguments"],
  ["kwargsrepr", "Named arguments"],
  ["retries", "Retries"],
  ["eta", "Not before"],
  ["expires", "Expires"],
  ["origin", "Sent by"],
  ["root_id", "First task"],
  ["parent_id", "Called by"],
  ["group", "Group"],
  ["lang", "Language"],
];

// A task of Celery is named by its headers; its body stays a body.
function Task({ headers }) {
  if (typeof headers.task !== "string" || headers.id === undefined) return null;
  const known = TASK.filter(([name]) => ![undefined, null].includes(headers[name]));
  const said = Object.fromEntries(known.map(([name, label]) => [label, headers[name]]));
  return html`<h4>Celery task</h4><${Members} of=${{ Task: headers.task, ...said }} />`;
}

// --- life ----------------------------------------------------------------------------------------

const REASONS = {
  rejected: "a consumer rejected it",
  expired: "it expired",
  maxlen: "the queue was full",
  delivery_limit: "it was delivered too often",
};

// The deaths that the headers tell, the first one first.
function deathsOf(headers) {
  const deaths = headers["x-death"];
  if (!Array.isArray(deaths)) return [];
  return deaths.filter((each) => each && typeof each === "object").reverse();
}

function Route({ message, vhost, queue }) {
  const [state, setState] = useState({ steps: null, error: null });
  const ask = async () => {
    try {
      const where = `exchanges/${path(vhost, message.exchange || "amq.default")}/explain`;
      const { headers, ...properties } = message.properties ?? {};
      const { steps } = await send("POST", where, {
        routing_key: message.routing_key,
        payload_bytes: message.payload_bytes,
        properties: { ...properties, headers: message.kept_headers ?? headers ?? {} },
      });
      setState({ steps, error: null });
    } catch (error) {
      setState({ steps: null, error });
    }
  };
  const bindings = state.steps?.flatMap((step) =>
    step.bindings.map((each) => ({ source: step.exchange, ...each })),
  );
  const ours = bindings?.filter(
    ({ destination, destination_type: type }) => type === "exchange" || destination === queue,
  );
  if (message.exchange === "") return "which is the name of the queue.";
  if (!state.steps) {
    return html`<button type="button" class="quiet" onClick=${ask}>Which bindings match now</button>
      <${Problem} error=${state.error} />`;
  }
  if (!ours.length) return html`No binding to this queue matches now.`;
  return html`<ul>${ours.map(
    (each, at) => html`<li key=${at}><${ExchangeLink} vhost=${vhost} name=${each.source} />
      ${" "}by <code>${each.routing_key}</code> to ${each.destination}</li>`,
  )}</ul>`;
}

const TRACE = "amq.rabbitmq.trace";

// What the trace has recorded of the message that it has copied: by whom, where from and where to.
function tracedOf({ exchange, routing_key: key, properties }) {
  const { connection, channel, user, routed_queues: queues, ...more } = properties?.headers ?? {};
  if (exchange !== TRACE || typeof connection !== "string") return [];
  const on = html`user '${String(user)}', channel ${String(channel)} of${" "}
    <a href=${to("connections", connection)}>${connection}</a>`;
  if (key.startsWith("deliver.")) return [["Traced", html`it was delivered to ${on}`]];
  const keys = Array.isArray(more.routing_keys) ? more.routing_keys.map(String).join(", ") : "";
  const into = Array.isArray(queues) ? queues.map(String).join(", ") : "";
  return [
    ["Traced", html`it was published by ${on}`],
    ["Traced", `from exchange '${String(more.exchange_name)}' by the key '${keys}' it was routed to
      ${into || "no queue"}`],
  ];
}

const unknownUser = (vhost) => html`by whom is not recorded, as it names no user:${" "}
  <code>harebell trace on${vhost === "/" ? "" : ` --vhost ${word(vhost)}`}</code>
  ${" "}records publishers and consumers from then on`;

function Life({ message, vhost, queue }) {
  const { headers = {}, user_id: user, app_id: app, timestamp } = message.properties ?? {};
  const named = [user && `user '${user}'`, app && `application '${app}'`].filter(Boolean);
  const told = Number.isFinite(timestamp) ? ` at ${dateTime(timestamp * 1000)}, as it says` : "";
  const rows = [
    ...tracedOf(message),
    ["Published", html`${named.length ? `by ${named.join(", ")}` : unknownUser(vhost)}${told}`],
    ["Routed", html`from <${ExchangeLink} vhost=${vhost} name=${message.exchange} /> by the key
      ${" "}<code>${message.routing_key}</code>
      ${" "}<${Route} message=${message} vhost=${vhost} queue=${queue} />`],
  ];
  for (const death of deathsOf(headers)) {
    const { queue: from, reason, count: times, time, exchange, "routing-keys": keys } = death;
    const why = REASONS[reason] ?? value(reason);
    const often = Number(times) > 1 ? `, ${times} times` : "";
    const when = Number.isFinite(time) ? `, first ${dateTime(time * 1000)}` : "";
    rows.push([
      "Dead-lettered",
      html`in <a href=${to("queues", vhost, String(from))}>${String(from)}</a>:
        ${" "}${why}${often}${when}; it had come from${" "}
        <${ExchangeLink} vhost=${vhost} name=${String(exchange ?? "")} /> by
        ${" "}<code>${Array.isArray(keys) ? keys.map(value).join(", ") : value(keys ?? "")}</code>`,
    ]);
  }
  if (headers["x-retried-from"] !== undefined) {
    const times = value(headers["x-retries"] ?? 1);
    rows.push(["Retried", `from ${value(headers["x-retried-from"])}, ${times} times`]);
  }
  if (message.timestamp) rows.push(["Received", dateTime(Date.parse(message.timestamp))]);
  const place = { message, vhost, queue };
  if (message.due) rows.push(["Due", dateTime(Date.parse(message.due))]);
  else rows.push(["Delivered", html`<${Delivered} ...${place} />`]);
  return html`<h4>Life</h4><dl class="members">${rows.map(
    ([label, told], at) => html`<div key=${at}><dt>${label}</dt><dd>${told}</dd></div>`,
  )}</dl>`;
}

const HELD = {
  ready: () => "it is ready",
  waiting: ({ due }) => `it waits for its retry until ${dateTime(Date.parse(due))}`,
  leased: ({ group }) => `group '${group}' has leased it`,
  withheld: () => "it is withheld, such as by a distributed transaction",
  delivered: ({ channel_details: channel, consumer_tag: tag }) =>
    channel
      ? html`${tag ? `consumer '${tag}'` : "a get"} has it, of channel${" "}
      <a href=${to("channels", channel.name)}>${channel.name}</a>`
      : "a get of another user has it",
};

// To whom a message went, which the broker looks for when it is asked.
function Delivered({ message, vhost, queue }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const { state, redelivered, delivery_count: failures, offset } = message;
  const ask = async () => {
    try {
      setFound(await get(`queues/${path(vhost, queue)}/messages/${offset}`));
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  const failed = failures ? `; ${failures} deliveries have failed` : "";
  if (found) return html`${HELD[found.state](found)}${failed}`;
  if (state === "unacknowledged" && queue) {
    return html`it is not ready${failed}${" "}<button type="button" class="quiet"
      onClick=${ask}>Who has it now</button><${Problem} error=${error} />`;
  }
  const past = redelivered ? "at least once, and it came back" : "not yet, as far as is recorded";
  return past + failed;
}

// --- what is done with it ------------------------------------------------------------------------

function save(message) {
  const link = document.createElement("a");
  const data = dataOf(message.payload, message.payload_encoding);
  link.href = URL.createObjectURL(new Blob([data], { type: "application/octet-stream" }));
  link.download = `message-${message.offset ?? "body"}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function CopyAs({ message, vhost }) {
  const [form, setForm] = useState("harebell");
  const [said, setSaid] = useState("");
  const id = useId("copy");
  const { text, note } = copyAs(form, message, vhost);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("It is copied.");
    } catch {
      // Browsers give the clipboard only to pages of this machine or over TLS.
      getSelection().selectAllChildren(document.getElementById(id));
      setSaid("It is selected: copy it with the keyboard.");
    }
  };
  return html`<div class="buttons"><${Pick} label="As" value=${form}
      options=${Object.entries(FORMS)} onPick=${(chosen) => {
        setForm(chosen);
        setSaid("");
      }} />
    <button type="button" class="quiet" onClick=${copy}>Copy</button>
    <span role="status" class="done">${said}</span></div>
    ${note && html`<p class="hint">${note}</p>`}
    <pre tabindex="0" role="region" aria-label="Command" id=${id}>${text}</pre>`;
}

function PublishAgain({ message, vhost }) {
  const filled = editable(message);
  const publish = async (values) => {
    const where = `exchanges/${path(vhost, values.exchange || "amq.default")}/publish`;
    // A form has no other line breaks than its own: a body that was not edited stays as it is.
    const isSame = values.body === filled.body.replace(/\r\n?/g, "\n");
    const given = isSame ? { ...values, body: filled.body } : values;
    const answer = await send("POST", where, messageOf(given));
    return answer.routed ? "Published and routed." : "Published; it reached no queue.";
  };
  return html`<${Form} label="Publish again" button="Publish" action=${publish}>
    <${Field} label="Exchange" name="exchange" value=${message.exchange}
      hint="none is the default exchange" />
    <${MessageFields} routingKey=${filled.key} filled=${filled} />
  </${Form}>`;
}

// What needs all of the body, which is fetched first.
function WithAll({ message, fetchAll, children }) {
  const [whole, setWhole] = useState(
    bytesOf(message.payload, message.payload_encoding) < message.payload_bytes ? null : message,
  );
  const [error, setError] = useState(null);
  const fetch = async () => {
    try {
      if (!fetchAll) throw new Error("Only a part of the body is here.");
      const all = await fetchAll();
      if (bytesOf(all.payload, all.payload_encoding) < all.payload_bytes) {
        throw new Error("The body is larger than 1 MiB: get the message for all of it.");
      }
      setWhole(all);
    } catch (problem) {
      setError(problem);
    }
  };
  if (whole) return children(whole);
  return html`<button type="button" class="quiet" onClick=${fetch}>Load all of the body</button>
    <${Problem} error=${error} />`;
}

// A part that is made when it is opened for the first time.
function Later({ title, children }) {
  const [seen, setSeen] = useState(false);
  return html`<details class="fold" onToggle=${() => setSeen(true)}><summary>${title}</summary>
    <div class="folded">${seen && children}</div></details>`;
}

export function Message({ message, vhost, queue, fetchAll, schema, onSchema }) {
  const { headers = {}, ...properties } = message.properties ?? {};
  const types = message.header_types ?? {};
  const part = (children) => html`<${WithAll} message=${message} fetchAll=${fetchAll}
    children=${children} />`;
  return html`<article class="message" aria-label=${`Message ${message.offset ?? ""}`}>
    <div class="parts">
      <div><h4>Properties</h4><${Members} of=${properties} /></div>
      <div><h4>Headers</h4><${Rows} label="Headers" heads=${["Name", "Type", "Value"]}
        rows=${Object.entries(headers).map(([name, each]) => [name, types[name], value(each)])} />
      </div>
      <div><${Task} headers=${headers} />
        <${Life} message=${message} vhost=${vhost} queue=${queue} /></div>
    </div>
    <${Body} message=${message} fetchAll=${fetchAll} schema=${schema} onSchema=${onSchema} />
    <${Later} title="Download or copy">${part(
      (whole) => html`<button type="button" class="quiet"
        onClick=${() => save(whole)}>Download the body</button>
        <${CopyAs} message=${whole} vhost=${vhost} />`,
    )}</${Later}>
    <${Later} title="Edit and publish again">${part(
      (whole) => html`<${PublishAgain} message=${whole} vhost=${vhost} />`,
    )}</${Later}>
  </article>`;
}
