// What needs somebody: a sentence, and each finding with what repairs it.
import { html } from "./html.js";
import { lazy } from "./lazy.js";
import { Badge, Problem, RelativeTime } from "./pieces.js";
import { usePoll } from "./poll.js";
import { to } from "./router.js";

const Repair = lazy(() => import("./repair.js"), "Repair");

const PAGES = {
  "blocked-publishers": ["Look at the queues", () => to("queues")],
  trend: ["Look at the queues", () => to("queues")],
  query: ["Look at the queries", () => to("pipelines")],
  "connection-churn": ["Look at the connections", () => to("connections")],
};

// What a user can open to repair it.
function pageOf({ rule, kind, vhost, name }) {
  if (rule === "dead-letters") {
    const group = name === "" ? "" : `?origin=${encodeURIComponent(name)}`;
    return ["Look at the dead letters", () => to(rule, vhost) + group];
  }
  if (kind !== "queue") return PAGES[rule];
  return name === ""
    ? ["Look at the queues", () => to("queues")]
    : ["Look at the queue", () => to("queues", vhost, name)];
}

export function verdict(count) {
  if (count === 0) return "Healthy";
  return count === 1 ? "1 thing needs you" : `${count} things need you`;
}

function FindingItem({ of }) {
  const page = pageOf(of);
  return html`<li>
    <div>
      <p><${Badge} tone="bad">${of.rule}</${Badge}> <strong>${subject(of)}</strong>
        ${of.vhost !== "" && html` <span class="hint">in vhost ${of.vhost}</span>`}
        <span class="hint"> began <${RelativeTime} ms=${of.since} /></span></p>
      <p>${of.why}. <span class="hint">${of.advice}</span>
        ${of.command !== "" && html` <code>${of.command}</code>`}</p>
    </div>
    <div class="repairs">
      ${page && html`<a href=${page[1]()}>${page[0]}</a>`}
      ${of.repair && html`<${Repair} of=${of} />`}
    </div>
  </li>`;
}

// What it is about; the node is the broker itself.
function subject({ kind, name }) {
  return kind === "node" || kind === "alarm" ? name : `${kind} ${name}`;
}

// `shown` is false where the broker tells nothing that is counted.
export function Verdict({ shown }) {
  const { data, error } = usePoll(shown ? "health/findings" : null);
  if (!data) return html`<${Problem} error=${error} />`;
  const count = data.reduce((sum, { more }) => sum + (more || 1), 0);
  return html`<section aria-labelledby="health" class=${`health verdict ${count ? "bad" : ""}`}>
    <div role="status"><h2 id="health" class=${count ? "bad" : "good"}>${verdict(count)}</h2></div>
    <${Problem} error=${error} />
    ${
      count > 0 &&
      html`<ul>${data.map(
        (each) => html`<${FindingItem}
      key=${[each.node, each.rule, each.vhost, each.name].join("\n")} of=${each} />`,
      )}</ul>`
    }
  </section>`;
}
