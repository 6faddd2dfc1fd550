// What can be done with many queues at once. Each queue is asked for by a request of its own, the
// same as from its page.
import { get, path, send } from "../lib/api.js";
import { Arguments, SETTINGS } from "../lib/arguments.js";
import { several } from "../lib/bulk.js";
import { count } from "../lib/format.js";
import { Field, objectOf } from "../lib/forms.js";
import { html } from "../lib/html.js";

const JOB_EVERY_MS = 500;
const where = ({ vhost, name }) => `queues/${path(vhost, name)}`;
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
export function patternOf(names) {
  const quoted = names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return `^(?:${quoted.join("|")})$`;
}

function onlyVhost(rows) {
  const [first, ...others] = new Set(rows.map(({ vhost }) => vhost));
  if (others.length) throw new Error("A policy is for one vhost: choose queues of one.");
  return first;
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
    label: "Delete",
    heads,
    preview,
    text: (rows) => `The queues, their bindings and ${several(sum(rows, "messages"), "message")}
      will be gone.`,
    run: async (row) => {
      await send("DELETE", where(row));
      return "deleted";
    },
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
  {
    label: "Set a policy",
    heads,
    preview,
    text: () => `One policy for these queues by their names; it stands before policies of a lower
      priority.`,
    fields: () => html`<${Field} label="Name of the policy" name="policy" required />
      <${Field} label="Priority" name="priority" type="number" value="0" required />
      <${Arguments} known=${SETTINGS} label="Settings" name="definition" required
        hint='as JSON: {"max-length": 1000}' />`,
    prepare: async (rows, { policy, priority, definition }) => {
      await send("PUT", `policies/${path(onlyVhost(rows), policy)}`, {
        pattern: patternOf(rows.map(({ name }) => name)),
        definition: objectOf(definition, "The settings"),
        priority: Number(priority),
        "apply-to": "queues",
      });
    },
    // What each queue has now: another policy may stand before this one.
    run: async (row, { policy }) => {
      const { policy: now } = await get(`${where(row)}?columns=policy`);
      if (now !== policy) throw new Error(`the policy '${now}' is in force`);
      return `the policy '${policy}' is in force`;
    },
  },
];
