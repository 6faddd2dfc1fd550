// The settings of a queue: which value is in force, and where it comes from.
import { path } from "../lib/api.js";
import { value } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Problem, Rows, Section } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";

const LEAST = new Set([
  "consumer-timeout",
  "expires",
  "max-in-memory-bytes",
  "max-in-memory-length",
  "max-length",
  "max-length-bytes",
  "message-ttl",
]);

// Whether the argument has no effect beside a policy's value, by the rules of the broker.
function policyWins(key, argument, policy, type) {
  if (type === "stream" || (type === "quorum" && key === "overflow")) return true;
  if (LEAST.has(key)) return policy < argument;
  if (key === "delivery-limit") return argument < 0 || (policy >= 0 && policy < argument);
  return false;
}

// [[setting, value, from, instead of], ...]
export function settingsOf(queue, policy, operator) {
  const inForce = queue.effective_policy_definition ?? {};
  const given = new Map(
    Object.entries(queue.arguments ?? {}).map(([name, each]) => [name.replace(/^x-/, ""), each]),
  );
  const rows = [];
  for (const key of [...new Set([...given.keys(), ...Object.keys(inForce)])].sort()) {
    const byPolicy = key in inForce;
    const source =
      byPolicy &&
      operator?.definition?.[key] === inForce[key] &&
      policy?.definition?.[key] !== inForce[key]
        ? `operator policy '${queue.operator_policy}'`
        : `policy '${queue.policy}'`;
    if (!given.has(key)) {
      rows.push([key, inForce[key], source, ""]);
    } else if (byPolicy && policyWins(key, given.get(key), inForce[key], queue.type)) {
      rows.push([key, inForce[key], source, `argument: ${value(given.get(key))}`]);
    } else {
      rows.push([
        key,
        given.get(key),
        "argument",
        byPolicy ? `${source}: ${value(inForce[key])}` : "",
      ]);
    }
  }
  return rows;
}

export function Settings({ queue }) {
  const { vhost } = queue;
  const own = usePoll(queue.policy ? `policies/${path(vhost, queue.policy)}` : null, {
    every: 15000,
  });
  const ruling = usePoll(
    queue.operator_policy ? `operator-policies/${path(vhost, queue.operator_policy)}` : null,
    { every: 15000 },
  );
  const rows = settingsOf(queue, own.data, ruling.data);
  return html`<${Section} id="settings" title="Settings">
    <${Problem} error=${own.error ?? ruling.error} />
    <${Rows} label="Settings" heads=${["Setting", "Value in force", "From", "Instead of"]}
      empty="The queue has no arguments, and no policy matches it."
      rows=${rows.map(([key, shown, ...rest]) => [
        key,
        html`<code>${value(shown)}</code>`,
        ...rest,
      ])} />
  </${Section}>`;
}
