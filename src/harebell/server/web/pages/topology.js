// A picture of a vhost that can be walked: exchanges, bindings, queues, dead letters, alternates.
import { path } from "../lib/api.js";
import { around, columnsOf, graphOf, idOf, only } from "../lib/graph.js";
import { html } from "../lib/html.js";
import { Problem } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import { useStore } from "../lib/store.js";
import { useTitle } from "../lib/title.js";
import { vhost } from "../lib/vhosts.js";

const READ_LIMIT = 500;
const DRAWN_MOST = 60;
const STEPS = 2;
const WIDTH = 170;
const HEIGHT = 38;
const GAP_X = 110;
const GAP_Y = 18;
const LETTERS = 20;
const KEY_LETTERS = 14;
const EVERY_MS = 15000;

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function useList(where, columns) {
  const query = `page=1&page_size=${READ_LIMIT}&columns=${columns}`;
  const { data, error } = usePoll(`${where}?${query}`, { every: EVERY_MS });
  return { rows: data?.items ?? null, total: data?.filtered_count ?? 0, error };
}

// The left upper corner of each node.
function placed(graph) {
  const columns = columnsOf(graph);
  const filled = [];
  const places = new Map();
  for (const id of graph.nodes.keys()) {
    const at = columns.get(id);
    filled[at] = (filled[at] ?? 0) + 1;
    places.set(id, {
      x: 10 + at * (WIDTH + GAP_X),
      y: 10 + (filled[at] - 1) * (HEIGHT + GAP_Y),
    });
  }
  const deepest = Math.max(0, ...filled.map((each) => each ?? 0));
  const width = 20 + filled.length * (WIDTH + GAP_X) - GAP_X;
  return { places, width, height: 20 + deepest * (HEIGHT + GAP_Y) };
}

function Edge({ edge, places }) {
  const from = places.get(edge.from);
  const end = places.get(edge.to);
  const x1 = from.x + WIDTH;
  const y1 = from.y + HEIGHT / 2;
  const x2 = end.x;
  const y2 = end.y + HEIGHT / 2;
  const bend = x2 > x1 ? (x2 - x1) / 2 : 60;
  const line = `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  return html`<g class=${`edge ${edge.kind}`}>
    <path d=${line} marker-end="url(#arrow)" />
    <text x=${(x1 + x2) / 2} y=${(y1 + y2) / 2 - 5}>${cut(edge.label, KEY_LETTERS)}</text>
    <title>${edge.kind} ${edge.label}</title>
  </g>`;
}

function Node({ node, place, where, centre }) {
  const chosen = node.id === centre;
  const address = chosen
    ? to(node.kind === "queue" ? "queues" : "exchanges", where, node.name)
    : to("topology", where, node.kind, node.name);
  return html`<a href=${address} class=${`node ${node.kind} ${chosen ? "chosen" : ""}`}>
    <rect x=${place.x} y=${place.y} width=${WIDTH} height=${HEIGHT}
      rx=${node.kind === "queue" ? 4 : 19} />
    <text x=${place.x + 14} y=${place.y + 16}>${cut(node.name, LETTERS)}</text>
    <text x=${place.x + 14} y=${place.y + 30} class="kind">${node.kind}, ${node.type}</text>
    <title>${node.name} ${node.kind}, ${node.type}</title>
  </a>`;
}

function Picture({ graph, where, centre }) {
  const { places, width, height } = placed(graph);
  return html`<div class="scroll picture" tabindex="0" role="region" aria-label="Picture">
    <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group"
      aria-label="Topology">
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"
        markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" /></marker></defs>
      ${graph.edges.map((edge, at) => html`<${Edge} key=${at} edge=${edge} places=${places} />`)}
      ${[...graph.nodes.values()].map(
        (node) => html`<${Node} key=${node.id} node=${node} place=${places.get(node.id)}
          where=${where} centre=${centre} />`,
      )}
    </svg></div>`;
}

// The part that is drawn: around the chosen object, or what has an edge, or the first of all.
function part(whole, centre) {
  if (centre !== null) return only(whole, around(whole, centre, STEPS));
  const joined = new Set(whole.edges.flatMap(({ from, to: end }) => [from, end]));
  const ids = joined.size ? [...whole.nodes.keys()].filter((id) => joined.has(id)) : [];
  return only(whole, new Set(ids.slice(0, DRAWN_MOST)));
}

export function Topology({ names: [, given, kind, name] }) {
  useTitle("Topology");
  const chosen = useStore(vhost);
  const where = given ?? (chosen || "/");
  const centre = name === undefined ? null : idOf(kind, name);
  const exchanges = useList(`exchanges/${path(where)}`, "name,type,arguments,policy");
  const queues = useList(
    `queues/${path(where)}`,
    "name,type,arguments,effective_policy_definition",
  );
  const bindings = useList(
    `bindings/${path(where)}`,
    "source,destination,destination_type,routing_key",
  );
  const policies = usePoll(`policies/${path(where)}`, { every: EVERY_MS });
  const lists = [exchanges, queues, bindings];
  const title = html`<div class="title"><h1>Topology</h1><span class="hint">vhost ${where}</span>
    <span class="space"></span>
    ${centre !== null && html`<a href=${to("topology")}>The whole vhost</a>`}</div>
    <${Problem} error=${lists.find(({ error }) => error)?.error} />`;
  if (lists.some(({ rows }) => rows === null)) return title;
  const whole = graphOf(exchanges.rows, queues.rows, bindings.rows, policies.data ?? []);
  const graph = part(whole, centre);
  const left = Math.max(...lists.map(({ total }) => total)) > READ_LIMIT;
  return html`${title}
    <ul class="legend keys">
      <li><i class="line binding"></i>binding, with its key</li>
      <li><i class="line dead-letter"></i>dead letters</li>
      <li><i class="line alternate"></i>alternate exchange</li>
    </ul>
    <p class="hint">${
      centre === null
        ? `${graph.nodes.size} of ${whole.nodes.size} exchanges and queues: those that have a
          binding, but for the default exchange. Choose one to see what is around it.`
        : `What is at most ${STEPS} steps from ${kind} '${name}'. Choose it again for its page.`
    }${left ? ` Only the first ${READ_LIMIT} of each kind were read.` : ""}</p>
    ${
      graph.nodes.size
        ? html`<${Picture} graph=${graph} where=${where} centre=${centre} />`
        : html`<p class="empty">${centre === null ? "Nothing is bound." : "It is not there."}</p>`
    }`;
}
