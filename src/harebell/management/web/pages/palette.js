// Finds queues, exchanges, connections, users, policies, routing keys and pages; and the list of
// keys.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../lib/api.js";
import { useId } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { favourites } from "../lib/kept.js";
import { GO, letters } from "../lib/keys.js";
import { Problem } from "../lib/pieces.js";
import { to } from "../lib/router.js";
import { has } from "../lib/session.js";
import { useStore } from "../lib/store.js";
import { PAGES } from "./pages.js";

const TYPING_MS = 150;
const ADDRESSES = {
  queue: ({ vhost, name }) => to("queues", vhost, name),
  exchange: ({ vhost, name }) => to("exchanges", vhost, name || "amq.default"),
  "routing key": ({ vhost, name }) => to("exchanges", vhost, name || "amq.default"),
  connection: ({ name }) => to("connections", name),
  user: ({ name }) => to("users", name),
  policy: () => to("policies"),
};

const shown = (dialog) => dialog && !dialog.open && dialog.showModal();

// Pages and favourites, which need no answer of the broker.
function near(text) {
  const part = text.toLowerCase();
  const matches = (name) => name.toLowerCase().includes(part);
  return [
    ...favourites()
      .get()
      .filter((names) => matches(names.at(-1)))
      .map((names) => ({ kind: "favourite", name: names.at(-1), address: to(...names) })),
    ...PAGES.filter(({ label, tag }) => label && has(tag ?? "management") && matches(label)).map(
      ({ label, name }) => ({ kind: "page", name: label, address: to(name) }),
    ),
  ];
}

function titleOf({ kind, name, detail }) {
  if (kind === "connection") return detail || name;
  if (kind === "routing key") return detail;
  return name || "(default exchange)";
}

function placeOf({ kind, vhost, name, detail }) {
  if (kind === "connection") return detail ? name : "";
  if (kind === "routing key") return `from ${name || "(default exchange)"}, ${vhost}`;
  return [vhost, detail].filter(Boolean).join(", ");
}

function useHits(text) {
  const [state, setState] = useState({ text: "", hits: [], error: null });
  useEffect(() => {
    if (!text.trim()) {
      setState({ text, hits: [], error: null });
      return undefined;
    }
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const found = await get(`search?text=${encodeURIComponent(text.trim())}`, stop.signal);
        const hits = found
          .filter(({ kind }) => ADDRESSES[kind])
          .map((hit) => ({ ...hit, address: ADDRESSES[hit.kind](hit) }));
        if (!stop.signal.aborted) setState({ text, hits, error: null });
      } catch (error) {
        if (!stop.signal.aborted) setState({ text, hits: [], error });
      }
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  return state;
}

export function Palette({ onClose }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef(null);
  const id = useId("palette");
  const { text: answered, hits, error } = useHits(text);
  const waits = answered !== text && text.trim();
  // Until the broker has answered, those of the earlier answer that are meant by this text, too.
  const meant = (hit) =>
    !waits || `${titleOf(hit)}\n${hit.name}`.toLowerCase().includes(text.trim().toLowerCase());
  const found = [...near(text), ...hits.filter(meant)];
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => {
    list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen, found.length]);
  const close = (event) => event.currentTarget.closest("dialog").close();
  const open = (event, { address }) => {
    close(event);
    location.hash = address;
  };
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) {
      event.preventDefault();
      setAt((chosen + step + found.length) % found.length);
    } else if (event.key === "Enter" && found[chosen]) {
      event.preventDefault();
      open(event, found[chosen]);
    }
  };
  return html`<dialog ref=${shown} class="palette" aria-label="Search" onClose=${onClose}>
    <input type="text" role="combobox" aria-label="Search" aria-expanded="true"
      aria-controls=${id} aria-autocomplete="list" autocomplete="off" spellcheck=${false}
      aria-activedescendant=${found.length ? `${id}-${chosen}` : undefined} maxlength="200"
      placeholder="queue, exchange, connection, user, policy, routing key or page" value=${text}
      onKeyDown=${press} onInput=${(event) => {
        setText(event.currentTarget.value);
        setAt(0);
      }} />
    <p class="unseen" role="status">${waits ? "" : `${found.length} found`}</p>
    <${Problem} error=${error} />
    <ul role="listbox" id=${id} aria-label="Found" ref=${list}>
      ${found.map(
        (hit, number) => html`<li key=${number} role="option" id=${`${id}-${number}`}
          aria-selected=${number === chosen} onClick=${(event) => open(event, hit)}>
          <span class="kind">${hit.kind}</span> <b>${titleOf(hit)}</b>
          <span class="hint">${placeOf(hit)}</span></li>`,
      )}
    </ul>
    ${waits && html`<p class="hint">Searching…</p>`}
    ${!found.length && !waits && html`<p class="hint">Nothing is found.</p>`}
  </dialog>`;
}

const KEYS = [
  ["Ctrl K", "search for anything"],
  ["/", "go to the filter of the list"],
  ["?", "show these keys"],
  ...Object.entries(GO).map(([key, page]) => [`g ${key}`, `go to ${page}`]),
];

export function Shortcuts({ onClose }) {
  const [on] = useStore(letters());
  return html`<dialog ref=${shown} aria-labelledby="shortcuts" onClose=${onClose}>
    <h2 id="shortcuts">Keys</h2>
    <dl class="members">${KEYS.map(
      ([key, does]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${does}</dd></div>`,
    )}</dl>
    <label class="inline"><input type="checkbox" checked=${on}
      onChange=${(event) => letters().set([event.currentTarget.checked])} />
      Keys of one letter</label>
    <div class="buttons"><button type="button" class="quiet"
      onClick=${(event) => event.currentTarget.closest("dialog").close()}>Close</button></div>
  </dialog>`;
}
