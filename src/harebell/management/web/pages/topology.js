// A picture of a vhost that can be walked: exchanges, bindings, queues, dead letters, alternates.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, path } from "../lib/api.js";
import { count, rate } from "../lib/format.js";
import { around, bundled, columnsOf, graphOf, idOf, only } from "../lib/graph.js";
import { html } from "../lib/html.js";
import { Problem } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { address, keep, to } from "../lib/router.js";
import { useStore } from "../lib/store.js";
import { useTitle } from "../lib/title.js";
import { vhost } from "../lib/vhosts.js";

const READ_LIMIT = 500;
const BINDING_PAGES = 20;
const TITLE_KEYS = 30;
const ZOOMS = [0.4, 0.6, 0.8, 1, 1.25, 1.6, 2];
const DRAWN_MOST = 60;
const STEPS = 2;
const WIDTH = 170;
const HEIGHT = 38;
const GAP_X = 110;
const GAP_Y = 18;
const LETTERS = 20;
const KEY_LETTERS = 14;
const EVERY_MS = 15000;
const TYPING_MS = 250;

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function useList(where, columns, more = "") {
  const query = `page=1&page_size=${READ_LIMIT}&columns=${columns}${more}`;
  const { data, error } = usePoll(where && `${where}?${query}`, { every: EVERY_MS });
  return { rows: data?.items ?? null, total: data?.filtered_count ?? 0, error };
}

// Bindings of many pages as one list: an exchange may have thousands.
async function readBindings(where, signal) {
  const first = await get(`${where}&page=1`, signal);
  for (let page = 2; page <= Math.min(first.page_count, BINDING_PAGES); page += 1) {
    first.items.push(...(await get(`${where}&page=${page}`, signal)).items);
  }
  return first;
}

function useBindings(where) {
  const columns = "source,destination,destination_type,routing_key";
  // Those of the default exchange, one of each queue, come last.
  const query = `page_size=${READ_LIMIT}&columns=${columns}&sort=source&sort_reverse=true`;
  const { data, error } = usePoll(`${where}?${query}`, { every: EVERY_MS, load: readBindings });
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
  const more = edge.keys.length - 1;
  // Near its end, where the edges of one source are apart: this far on the curve.
  const [atX, atY] = [x1 * 0.216 + bend * -0.252 + x2 * 0.784, y1 * 0.216 + y2 * 0.784];
  return html`<g class=${`edge ${edge.kind} ${more > 0 ? "bundle" : ""}`}>
    <path d=${line} marker-end="url(#arrow)" />
    <text x=${atX} y=${atY - 5}>${cut(edge.keys[0], KEY_LETTERS)}${
      more > 0 ? ` +${count(more)}` : ""
    }</text>
    <title>${edge.kind} ${edge.keys.slice(0, TITLE_KEYS).join(", ")}${
      edge.keys.length > TITLE_KEYS ? ` and ${count(edge.keys.length - TITLE_KEYS)} more` : ""
    }</title>
  </g>`;
}

function Node({ node, place, where, centre }) {
  const chosen = node.id === centre;
  const kind = node.type ? `${node.kind}, ${node.type}` : node.kind;
  const about = node.rate > 0 ? `${kind}, ${rate(node.rate)}/s` : kind;
  const address = chosen
    ? to(node.kind === "queue" ? "queues" : "exchanges", where, node.name)
    : to("topology", where, node.kind, node.name);
  return html`<a href=${address} class=${`node ${node.kind} ${chosen ? "chosen" : ""}`}>
    <rect x=${place.x} y=${place.y} width=${WIDTH} height=${HEIGHT}
      rx=${node.kind === "queue" ? 4 : 19} />
    <text x=${place.x + 14} y=${place.y + 16}>${cut(node.name, LETTERS)}</text>
    <text x=${place.x + 14} y=${place.y + 30} class="kind">${about}</text>
    <title>${node.name} ${about}</title>
  </a>`;
}

function Picture({ graph, where, centre }) {
  const { places, width, height } = placed(graph);
  const [zoom, setZoom] = useState(1);
  const box = useRef(null);
  const step = (by) => {
    const at = ZOOMS.findIndex((each) => each >= zoom) + by;
    setZoom(ZOOMS[Math.max(0, Math.min(ZOOMS.length - 1, at))]);
  };
  const fit = () => {
    const whole = Math.min(1, box.current.clientWidth / width, box.current.clientHeight / height);
    setZoom(Math.max(0.2, whole));
  };
  return html`<div class="buttons zoom" role="group" aria-label="Zoom">
      <button type="button" class="quiet" aria-label="Smaller" onClick=${() => step(-1)}>−</button>
      <span role="status">${Math.round(zoom * 100)} %</span>
      <button type="button" class="quiet" aria-label="Larger" onClick=${() => step(1)}>+</button>
      <button type="button" class="quiet" onClick=${fit}>Fit</button></div>
    <div class="scroll picture" tabindex="0" role="region" aria-label="Picture" ref=${box}>
    <svg width=${width * zoom} height=${height * zoom} viewBox=${`0 0 ${width} ${height}`}
      role="group"
      aria-label="Topology">
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"
        markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" /></marker></defs>
      ${bundled(graph.edges).map(
        (edge, at) => html`<${Edge} key=${at} edge=${edge} places=${places} />`,
      )}
      ${[...graph.nodes.values()].map(
        (node) => html`<${Node} key=${node.id} node=${node} place=${places.get(node.id)}
          where=${where} centre=${centre} />`,
      )}
    </svg></div>`;
}

// The part that is drawn: around the chosen object, what the filter names and what that leads to,
// or what has an edge.
function part(whole, centre, text) {
  if (centre !== null) return only(whole, around(whole, centre, STEPS));
  if (text) {
    const named = [...whole.nodes.values()].filter(({ name }) => name.includes(text));
    const found = named.slice(0, DRAWN_MOST).map(({ id }) => id);
    const near = found.flatMap((id) => [...around(whole, id, 1)]);
    return only(whole, new Set([...found, ...near].slice(0, 2 * DRAWN_MOST)));
  }
  const joined = new Set(whole.edges.flatMap(({ from, to: end }) => [from, end]));
  const ids = joined.size ? [...whole.nodes.keys()].filter((id) => joined.has(id)) : [];
  return only(whole, new Set(ids.slice(0, DRAWN_MOST)));
}

// "500 of 5,072 queues", for each list of which only the first were read.
function unread(lists) {
  return Object.entries(lists)
    .filter(([, { rows, total }]) => rows.length < total)
    .map(([what, { rows, total }]) => `${count(rows.length)} of ${count(total)} ${what}`)
    .join(", ");
}

function whyEmpty(centre, text, left) {
  if (centre !== null) return "It is not there.";
  if (text) return `Nothing that was read has '${text}' in its name.`;
  if (left) return `Nothing of what was read is bound (${left}): filter by a name.`;
  return "Nothing is bound.";
}

export function Topology({ names: [, given, kind, name] }) {
  useTitle("Topology");
  const chosen = useStore(vhost);
  const where = given ?? (chosen || "/");
  const centre = name === undefined ? null : idOf(kind, name);
  const [typed, setTyped] = useState(() => address().get("filter") ?? "");
  const [text, setText] = useState(typed);
  useEffect(() => {
    const timer = setTimeout(() => {
      setText(typed);
      keep({ filter: typed });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const named = text ? `&name=${encodeURIComponent(text)}` : "";
  const exchanges = useList(
    `exchanges/${path(where)}`,
    "name,type,arguments,policy,message_stats.publish_in_details.rate",
  );
  const queues = useList(
    `queues/${path(where)}`,
    "name,type,arguments,effective_policy_definition,message_stats.publish_details.rate",
    named,
  );
  const bindings = useBindings(`bindings/${path(where)}`);
  const side = kind === "exchange" ? "exchanges" : "queues";
  const more = usePoll(
    centre === null
      ? null
      : `${side}/${path(where, name)}/bindings${side === "exchanges" ? "/source" : ""}`,
    { every: EVERY_MS },
  );
  const policies = usePoll(`policies/${path(where)}`, { every: EVERY_MS });
  const lists = [exchanges, queues, bindings];
  const title = html`<div class="title"><h1>Topology</h1><span class="hint">vhost ${where}</span>
    <span class="space"></span>
    ${centre !== null && html`<a href=${to("topology")}>The whole vhost</a>`}</div>
    <${Problem} error=${lists.find(({ error }) => error)?.error} />`;
  if (lists.some(({ rows }) => rows === null)) return title;
  const known = new Map(
    [...bindings.rows, ...(more.data ?? [])].map((each) => [
      JSON.stringify([each.source, each.destination_type, each.destination, each.routing_key]),
      each,
    ]),
  );
  const whole = graphOf(exchanges.rows, queues.rows, [...known.values()], policies.data ?? []);
  const graph = part(whole, centre, text);
  const left = unread({ exchanges, queues, bindings });
  return html`${title}
    <ul class="legend keys">
      <li><i class="line binding"></i>binding, with its key</li>
      <li><i class="line dead-letter"></i>dead letters</li>
      <li><i class="line alternate"></i>alternate exchange</li>
    </ul>
    ${
      centre === null &&
      html`<div class="filters"><label for="topology-filter">Filter</label>
      <input id="topology-filter" type="search" placeholder="part of the name" autocomplete="off"
        spellcheck=${false} value=${typed}
        onInput=${(event) => setTyped(event.currentTarget.value)} /></div>`
    }
    <p class="hint">${
      centre === null
        ? `${graph.nodes.size} of ${whole.nodes.size} exchanges and queues: ${
            text
              ? "those with this name, and what is next to them."
              : "those that have a binding, but for the default exchange."
          } Choose one to see what is around it.`
        : `What is at most ${STEPS} steps from ${kind} '${name}'. Choose it again for its page.`
    }${left ? ` Read: ${left}. Filter by a name to see others.` : ""}</p>
    ${
      graph.nodes.size
        ? html`<${Picture} graph=${graph} where=${where} centre=${centre} />`
        : html`<p class="empty">${whyEmpty(centre, text, left)}</p>`
    }`;
}
