// What can be done with many queues or exchanges at once. Each is asked for by a request of its
// own, the same as from its page.
import { get, path, send } from "../lib/api.js";
import { Arguments, SETTINGS } from "../lib/arguments.js";
import { several } from "../lib/bulk.js";
import { count, rate } from "../lib/format.js";
import { Field, objectOf } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { DEFAULT_EXCHANGE, exchangeName } from "./bindings.js";

const JOB_EVERY_MS = 500;
const POLICY_HINTS = {
  queues: 'as JSON: {"max-length": 1000}',
  exchanges: 'as JSON: {"alternate-exchange": "unrouted"}',
};
const where = ({ vhost, name }) => `queues/${path(vhost, name)}`;
const exchangeAt = ({ vhost, name }) => `exchanges/${path(vhost, name || DEFAULT_EXCHANGE)}`;
const sum = (rows, field) => rows.reduce((total, row) => total + (row[field] ?? 0), 0);
const heads = ["Name", "Vhost", "Ready", "Unacked", "Consumers"];
const preview = (row) => [
  row.name,
  row.vhost,
  count(row.messages_ready),
  count(row.messages_unacknowledged),
  count(row.consumers),
];

async function ended(id, signal) {
  for (;;) {
    const job = await get(`jobs/${id}`, signal);
    if (job.ended) return job;
    await new Promise((done) => setTimeout(done, JOB_EVERY_MS));
  }
}

// A pattern for these names and no others.
function patternOf(names) {
  const quoted = names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return `^(?:${quoted.join("|")})$`;
}

function onlyVhost(rows) {
  const [first, ...others] = new Set(rows.map(({ vhost }) => vhost));
  if (others.length) throw new Error("A policy is for one vhost: choose those of one.");
  return first;
}

async function isThere(where) {
  try {
    await get(where);
    return true;
  } catch (error) {
    if (error.status === 404) return false;
    throw error;
  }
}

// `at(row)` is the path of a row; `conditions` has what the broker may be asked to look at first.
function deletion(at, text, conditions) {
  return {
    label: "Delete",
    text,
    fields: () => html`<${Field} label="Which" name="only" value=""
      options=${[["", "all of them"], ...conditions]} />`,
    run: async (row, { only }) => {
      await send("DELETE", at(row) + (only && `?${only}=true`));
      return "deleted";
    },
  };
}

function policy(kind, at) {
  return {
    label: "Set a policy",
    text: () => `One policy for these ${kind} by their names; it stands before policies of a lower
      priority.`,
    fields: () => html`<${Field} label="Name of the policy" name="policy" required />
      <${Field} label="Priority" name="priority" type="number" value="0" required />
      <${Arguments} known=${SETTINGS} label="Settings" name="definition" required
        hint=${POLICY_HINTS[kind]} />`,
    prepare: async (rows, { policy: name, priority, definition }) => {
      const policy = `policies/${path(onlyVhost(rows), name)}`;
      if (await isThere(policy)) {
        throw new Error(`There is a policy '${name}' already, which may be that of others: choose
          another name.`);
      }
      await send("PUT", policy, {
        pattern: patternOf(rows.map((row) => row.name)),
        definition: objectOf(definition, "The settings"),
        priority: Number(priority),
        "apply-to": kind,
      });
    },
    // What each has now: another policy may stand before this one.
    run: async (row, { policy: name }) => {
      const { policy: now } = await get(`${at(row)}?columns=policy`);
      if (now !== name) throw new Error(`${now ? `the policy '${now}'` : "no policy"} is in force`);
      return `the policy '${name}' is in force`;
    },
  };
}

export const QUEUE_ACTIONS = [
  {
    label: "Purge",
    heads,
    preview,
    text: (rows) => `${several(sum(rows, "messages_ready"), "ready message")} will be gone.
      Messages that consumers have not acknowledged stay with them.`,
    run: async (row) => {
      await send("DELETE", `${where(row)}/contents`);
      return "purged";
    },
  },
  {
    heads,
    preview,
    ...deletion(
      where,
      (rows) => `The queues, their bindings and ${several(sum(rows, "messages"), "message")}
        will be gone.`,
      [
        ["if-unused", "those without a consumer"],
        ["if-empty", "those without a message"],
      ],
    ),
  },
  {
    label: "Move messages",
    heads,
    preview,
    text: (rows) => `${several(sum(rows, "messages_ready"), "ready message")} will be moved.`,
    fields: () => html`<${Field} label="To queue" name="destination" required />`,
    run: async (row, { destination }, _prepared, signal) => {
      const body = { where: "true", to_queue: destination };
      const { id } = await send("POST", `${where(row)}/move`, body);
      const job = await ended(id, signal);
      if (job.state !== "done") throw new Error(job.problem || `job ${id} is ${job.state}`);
      return `${several(job.done, "message")} moved`;
    },
  },
  { heads, preview, ...policy("queues", where) },
];

const shown = {
  heads: ["Name", "Vhost", "Type", "Policy", "In/s"],
  preview: (row) => [
    exchangeName(row.name),
    row.vhost,
    row.type,
    row.policy,
    rate(row.message_stats?.publish_in_details?.rate),
  ],
};

export const EXCHANGE_ACTIONS = [
  {
    ...shown,
    ...deletion(
      exchangeAt,
      () => `The exchanges and their bindings will be gone. Messages that are published to them are
        refused then.`,
      [["if-unused", "those to which nothing is bound"]],
    ),
  },
  { ...shown, ...policy("exchanges", exchangeAt) },
];
