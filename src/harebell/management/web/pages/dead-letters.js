// The dead letters of a vhost in groups: look at samples, try a group again, or discard it.
import { useCallback, useEffect, useState } from "preact/hooks";
import { ApiError, ask, get, path, send } from "../lib/api.js";
import { differences } from "../lib/diff.js";
import { empty } from "../lib/empty.js";
import { bytes, count, dateTime } from "../lib/format.js";
import { Choice, Field, Form, objectOf, useId } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { lines } from "../lib/lines.js";
import {
  Awaited,
  Badge,
  Fold,
  Problem,
  RelativeTime,
  Rows,
  Section,
  Tiles,
} from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { exact, pretty } from "../lib/pretty.js";
import { address, go, to } from "../lib/router.js";
import { useStore } from "../lib/store.js";
import { useTitle } from "../lib/title.js";
import { useVhosts, vhost } from "../lib/vhosts.js";
import { Message } from "./message.js";
import { Job } from "./move-messages.js";

const SAMPLES = 20;
const BODY_BYTES = 50000;
const EXPORTED = 10000;
const WHOLE_BYTES = 1048576;
const HOLD = "dead-letters.held";
const VERBS = ["retry", "discard", "restore", "remove"];
// Headers of the broker, which a retry takes away by itself.
const OF_BROKER = /^x-(death$|first-death-|last-death-|discard-|retries$|retried-from$)/;

const queueAt = (where, queue) => `queues/${path(where, queue)}`;

// {data, error, look}: what a path answers, asked for when the page opens and when the user says.
function useOnce(where, load = get) {
  const [state, setState] = useState({ where: null, data: null, error: null, busy: false });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (where === null) return undefined;
    const stop = new AbortController();
    setState((old) => ({ ...old, busy: true }));
    load(where, stop.signal).then(
      (data) => stop.signal.aborted || setState({ where, data, error: null, busy: false }),
      (error) =>
        stop.signal.aborted ||
        setState((old) => ({
          where,
          data: old.where === where ? old.data : null,
          error,
          busy: false,
        })),
    );
    return () => stop.abort();
  }, [where, round]);
  const look = useCallback(() => setRound((number) => number + 1), []);
  const mine = state.where === where;
  return { ...state, data: mine ? state.data : null, error: mine ? state.error : null, look };
}

// --- groups --------------------------------------------------------------------------------------

function Times({ times }) {
  if (!times.length) return "";
  const highest = Math.max(...times.map(([, each]) => each));
  const label = `${dateTime(times[0][0])} to ${dateTime(times.at(-1)[0])}, at most ${count(
    highest,
  )} at a time`;
  const width = 100 / Math.max(times.length, 12);
  return html`<svg class="times" viewBox="0 0 100 20" preserveAspectRatio="none" role="img"
    aria-label=${label}><title>${label}</title>${times.map(([start, each], index) => {
      const height = Math.max(2, (each / highest) * 20);
      return html`<rect key=${start} x=${index * width} width=${width * 0.8}
        y=${20 - height} height=${height} />`;
    })}</svg>`;
}

const nothing = html`<span class="hint">none</span>`;

function Groups({ found, chosen, onChoose }) {
  const rows = found.groups.map((group) => [
    count(group.messages),
    html`<a href=${to("queues", found.vhost, group.queue)}>${group.queue}</a>`,
    group.origin,
    group.reason === null ? nothing : html`<${Badge}>${group.reason}</${Badge}>`,
    group.error ?? nothing,
    group.routing_key === null ? nothing : html`<code>${group.routing_key}</code>`,
    bytes(group.bytes),
    html`<${Times} times=${group.times} />`,
    html`<${RelativeTime} ms=${Date.parse(group.newest)} />`,
    html`<button type="button" class="quiet" aria-pressed=${chosen === keyOf(group)}
      aria-label=${`Look at ${count(group.messages)} of ${group.origin}`}
      onClick=${() => onChoose(group)}>Look</button>`,
  ]);
  return html`<${Rows} label="Dead letters" rows=${rows} keys=${found.groups.map(keyOf)}
    heads=${[
      ...["Messages", "Queue", "Died in", "Reason", "Error", "Routing key", "Bytes"],
      ...["Over time", "Newest", ""],
    ]}
    empty=${empty("dead-letters")} />`;
}

const keyOf = ({ queue, where }) => `${queue}\n${where}`;

function Incomplete({ found }) {
  if (found.complete) return null;
  const parts = [
    found.left && `${count(found.left)} messages were not looked at`,
    found.queues_left && `${count(found.queues_left)} queues were not looked at`,
    found.other && `${count(found.other)} dead letters are in groups that are not shown`,
  ].filter(Boolean);
  return html`<p class="hint" role="status">This is a part: ${parts.join("; ")}.</p>`;
}

// --- samples -------------------------------------------------------------------------------------

function aboutOf({ properties, ...message }) {
  const { headers, ...rest } = properties ?? {};
  const plain = { exchange: message.exchange, routing_key: message.routing_key, ...rest };
  const all = [
    ...Object.entries(plain),
    ...Object.entries(headers ?? {}).map(([name, each]) => [`headers.${name}`, each]),
  ];
  return all
    .map(([name, each]) => `${name}: ${typeof each === "string" ? each : JSON.stringify(each)}`)
    .sort()
    .join("\n");
}

function textOf(message) {
  const body = message.payload_encoding === "base64" ? message.payload : pretty(message.payload);
  return `${aboutOf(message)}\n\n${body}`;
}

function Compared({ left, right }) {
  const found = differences(textOf(left), textOf(right));
  const changed = found.some(({ mark }) => mark !== " ");
  return html`<h3>What differs between ${count(left.offset)} and ${count(right.offset)}</h3>
    ${
      changed
        ? html`<pre class="diff" tabindex="0" role="region" aria-label="Difference">${found.map(
            ({ mark, text }, index) =>
              html`<span key=${index} class=${mark === "-" ? "gone" : mark === "+" ? "new" : ""}
            >${`${mark} ${text}\n`}</span>`,
          )}</pre>`
        : html`<p class="empty">Nothing.</p>`
    }`;
}

function Samples({ where, group, rows, chosen, onChoose }) {
  const [schema, setSchema] = useState({});
  const id = useId("sample");
  const pair = rows.filter(({ offset }) => chosen.has(offset)).slice(0, 2);
  const shown = pair.length ? pair : rows.slice(0, 2);
  return html`<div class="workbench">
    <div class="samples" role="group" aria-label="Samples">${rows.map(
    ({ offset, timestamp, payload, payload_encoding: encoding }) =>
      html`<div class="check" key=${offset}>
      <input type="checkbox" id=${`${id}-${offset}`} checked=${chosen.has(offset)}
        onChange=${() => onChoose(offset)} />
      <label for=${`${id}-${offset}`}><b>${count(offset)}</b>
        ${" "}${timestamp && dateTime(Date.parse(timestamp))}
        ${" "}<code>${encoding === "base64" ? "base64" : payload.slice(0, 80)}</code></label>
    </div>`,
  )}</div>
  <div class="pair">${shown.map(
    (each) => html`<${Message} key=${each.offset} message=${each} vhost=${where}
      queue=${group.queue} schema=${schema} onSchema=${setSchema} />`,
  )}</div>
  ${shown.length === 2 && html`<${Compared} left=${shown[0]} right=${shown[1]} />`}</div>`;
}

// --- what is done --------------------------------------------------------------------------------

// Headers that have changed: those that are gone are null, and others keep their types.
function changes(before, after) {
  const changed = Object.entries(after).filter(
    ([name, each]) => JSON.stringify(each) !== JSON.stringify(before[name]),
  );
  const gone = Object.keys(before).filter((name) => !(name in after));
  return Object.fromEntries([...changed, ...gone.map((name) => [name, null])]);
}

function Edit({ at, message, onJob }) {
  const { headers = {} } = message.properties ?? {};
  const own = Object.fromEntries(
    Object.entries(headers).filter(([name]) => !OF_BROKER.test(name)),
  );
  const encoded = message.payload_encoding === "base64";
  const whole =
    encoded || new TextEncoder().encode(message.payload).length === message.payload_bytes;
  const retry = async ({ body, table }) => {
    const fields = {
      where: `offset = ${message.offset}`,
      headers: changes(own, objectOf(table, "The headers")),
    };
    // Browsers write line breaks of forms as two characters.
    const text = body?.replaceAll("\r\n", "\n");
    if (!encoded && whole && text !== message.payload.replaceAll("\r\n", "\n")) {
      fields.payload = text;
    }
    const made = await send("POST", `${at}/retry`, fields);
    onJob(made.id);
    return `Job ${made.id} has begun.`;
  };
  return html`<${Form} label="Edit and retry" button="Retry as edited" action=${retry}>
    ${
      encoded || !whole
        ? html`<p class="hint">The body is ${
            encoded ? "no text" : "long"
          }: it stays as it is.</p>`
        : html`<${Field} label="Body" name="body" area value=${message.payload} />`
    }
    <${Field} label="Headers (JSON)" name="table" area value=${JSON.stringify(own, null, 2)} />
  </${Form}>`;
}

async function hold(where, queue) {
  const at = queueAt(where, queue);
  try {
    await get(`${at}?columns=name`);
  } catch (error) {
    if (error.status !== 404) throw error;
    await send("PUT", at, { durable: true });
  }
}

async function download(at, where, name) {
  const query = new URLSearchParams({
    where,
    limit: String(EXPORTED),
    truncate: String(WHOLE_BYTES),
  });
  const answer = await ask("GET", `${at}/browse?${query}`);
  const text = await answer.text();
  const rows = text.split("\n").filter(Boolean);
  const last = rows.length ? exact(rows.at(-1)) : {};
  if (last.error && last.reason) throw new ApiError(400, last.reason);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
  return rows.length;
}

function Actions({ where, group, rows, chosen, onJob }) {
  const at = queueAt(where, group.queue);
  const selected = rows.filter(({ offset }) => chosen.has(offset));
  const scopes = [
    ["group", `all ${count(group.messages)} of the group`],
    ...(selected.length ? [["selected", `the ${count(selected.length)} selected`]] : []),
  ];
  const conditionOf = (scope) =>
    scope === "selected"
      ? `offset IN (${selected.map(({ offset }) => offset).join(", ")})`
      : group.where;
  const begin = async (verb, fields) => {
    const made = await send("POST", `${at}/${verb}`, fields);
    onJob(made.id);
    return `Job ${made.id} has begun.`;
  };
  const retry = ({ scope }) => begin("retry", { where: conditionOf(scope) });
  const discard = async ({ scope, reason, keep, queue }) => {
    const held = keep === "hold" ? queue.trim() || HOLD : undefined;
    if (held) await hold(where, held);
    return begin("discard", { where: conditionOf(scope), reason, hold: held });
  };
  const save = async ({ scope }) => {
    const number = await download(at, conditionOf(scope), `${group.queue}.ndjson`);
    return `${count(number)} messages were saved.`;
  };
  const scope = html`<${Choice} label="Which" name="scope" value=${scopes.at(-1)[0]}
    options=${scopes} />`;
  return html`<${Fold} title="Retry" open>
      <p>They go back to queue '${group.origin}', where they first died.</p>
      <${Form} label="Retry" button="Retry" action=${retry}>${scope}</${Form}></${Fold}>
    <${Fold} title="Edit one and retry it">${
      selected.length === 1
        ? html`<${Edit} key=${selected[0].offset} at=${at} message=${selected[0]}
            onJob=${onJob} />`
        : html`<p class="empty">Select one message above.</p>`
    }</${Fold}>
    <${Fold} title="Discard">
      <${Form} label="Discard" button="Discard" action=${discard}>${scope}
        <${Field} label="Reason" name="reason" required wide />
        <${Field} label="Afterwards" name="keep" value="hold" options=${[
          ["hold", "another queue holds them: it can be undone"],
          ["gone", "they are gone for good"],
        ]} />
        <${Field} label="Queue that holds them" name="queue" value=${HOLD} />
      </${Form}></${Fold}>
    <${Fold} title="Export">
      <${Form} label="Export" button="Save as NDJSON" action=${save}>${scope}</${Form}>
      <p class="hint">At most ${count(EXPORTED)} messages, each with 1 MiB of its body.</p>
    </${Fold}>`;
}

function Group({ where, group, onJob }) {
  const query = new URLSearchParams({
    where: group.where,
    limit: String(SAMPLES),
    truncate: String(BODY_BYTES),
    exact: "true",
  });
  const { data, error, look } = useOnce(`${queueAt(where, group.queue)}/browse?${query}`, lines);
  const [chosen, setChosen] = useState(new Set());
  const choose = (offset) =>
    setChosen((old) => {
      const next = new Set(old);
      if (!next.delete(offset)) next.add(offset);
      return next;
    });
  return html`<${Section} id="group" title=${`Dead letters of '${group.origin}'`}>
    <p><code>${group.where}</code></p>
    ${
      data
        ? html`<${Problem} error=${error} />
      <${Samples} where=${where} group=${group} rows=${data} chosen=${chosen} onChoose=${choose} />
      <${Actions} where=${where} group=${group} rows=${data} chosen=${chosen} onJob=${onJob} />`
        : html`<${Awaited} error=${error} onRetry=${look} />`
    }
  </${Section}>`;
}

// --- jobs ----------------------------------------------------------------------------------------

function Undo({ job, onJob }) {
  const undo = async () => {
    const made = await send("POST", `jobs/${job.id}/undo`, {});
    onJob(made.id);
    return `Job ${made.id} has begun.`;
  };
  return html`<${Form} label=${`Undo job ${job.id}`} button="Undo" action=${undo} />`;
}

function Jobs({ where, latest, onJob, onEnd }) {
  const { data, error } = usePoll("jobs");
  const mine = (data ?? [])
    .filter((job) => job.vhost === where && VERBS.includes(job.verb))
    .reverse();
  const running = mine.filter(({ state }) => state === "running").length;
  // What has ended has changed the groups.
  useEffect(() => {
    if (data && running === 0 && latest !== null) onEnd();
  }, [running, latest, data === null]);
  const rows = mine.map((job) => [
    job.id,
    job.verb,
    job.queue,
    job.reason,
    job.state,
    `${count(job.done)} of ${count(job.selected)}`,
    job.problem,
    job.verb === "discard" && job.state !== "running"
      ? html`<${Undo} job=${job} onJob=${onJob} />`
      : "",
  ]);
  return html`<${Section} id="jobs" title="Jobs">
    ${latest !== null && html`<${Job} key=${latest} id=${latest} />`}
    ${data ? html`<${Problem} error=${error} />` : html`<${Awaited} error=${error} />`}
    ${
      data &&
      html`<${Rows} label="Jobs" rows=${rows} keys=${mine.map(({ id }) => id)}
      heads=${["Job", "What", "Queue", "Reason", "State", "Done", "Problem", ""]} />`
    }
  </${Section}>`;
}

// --- the page ------------------------------------------------------------------------------------

function Workbench({ where }) {
  const { data, error, busy, look } = useOnce(`dead-letters/${path(where)}`);
  const [chosen, setChosen] = useState(null);
  const [job, setJob] = useState(null);
  // A finding leads to the dead letters of its queue.
  const origin = address().get("origin");
  const group = data?.groups.find((each) =>
    chosen === null ? each.origin === origin : keyOf(each) === chosen,
  );
  const shown = group && keyOf(group);
  if (!data) return html`<${Awaited} error=${error} onRetry=${look} />`;
  return html`<${Problem} error=${error} onRetry=${look} />
    <${Tiles} of=${[
      ["Dead letters", count(data.dead_letters)],
      ["Groups", count(data.groups.length)],
      ["Queues", count(data.queues)],
      ["Examined", count(data.examined)],
    ]} />
    <${Section} id="groups" title="Groups" actions=${html`<button type="button" class="quiet"
        onClick=${look} disabled=${busy}>Look again</button>`}>
      <${Incomplete} found=${data} />
      <${Groups} found=${data} chosen=${shown} onChoose=${(each) => setChosen(keyOf(each))} />
    </${Section}>
    ${
      group &&
      html`<${Group} key=${shown} where=${where} group=${group} onJob=${setJob} />`
    }
    <${Jobs} where=${where} latest=${job} onJob=${setJob} onEnd=${look} />`;
}

export function DeadLetters({ names }) {
  useTitle("Dead letters");
  const chosen = useStore(vhost);
  const vhosts = useVhosts();
  const where = names[1] ?? (chosen || vhosts.find((each) => each === "/") || vhosts[0]);
  return html`<div class="title"><h1>Dead letters</h1>
      ${
        vhosts.length > 1 &&
        where !== undefined &&
        html`<label class="choice">In vhost <select value=${where}
          onChange=${(event) => go("dead-letters", event.currentTarget.value)}>${vhosts.map(
            (each) => html`<option key=${each} value=${each}>${each}</option>`,
          )}</select></label>`
      }</div>
    ${
      where === undefined
        ? html`<${Awaited} />`
        : html`<${Workbench} key=${where} where=${where} />`
    }`;
}
