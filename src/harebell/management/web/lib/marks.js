// Moments that all charts of a page show: the start of the broker, and changes of policies.
import { useEffect, useMemo } from "preact/hooks";
import { html } from "./html.js";
import { path } from "./api.js";
import { dateTime } from "./format.js";
import { usePoll } from "./poll.js";
import { has } from "./session.js";
import { store, useStore } from "./store.js";

const EVERY_MS = 30000;
const MOST_SHOWN = 5;

// [{at, label}, ...] with the time in seconds.
export const marks = store([]);

const DONE = { set: "set", clear: "cleared" };

function changesOf(acts) {
  return (acts ?? []).flatMap(({ time, act, object, user }) => {
    const [kind, verb] = act.split(".");
    if (!/policies$/.test(kind) || !DONE[verb]) return [];
    const one = kind.startsWith("operator") ? "operator policy" : "policy";
    const by = user ? ` by ${user}` : "";
    return [{ at: Date.parse(time) / 1000, label: `${one} '${object}' ${DONE[verb]}${by}` }];
  });
}

// Show the marks of a vhost while a page is there, as far as the user may see them.
export function useMarks(vhost = null) {
  const where = vhost === null ? "" : `&of_vhost=${path(vhost)}`;
  const acts = usePoll(
    has("administrator") ? `audit?text=policies&result=done&since=1d&limit=100${where}` : null,
    { every: EVERY_MS },
  );
  const nodes = usePoll(has("monitoring") ? "nodes?columns=name,uptime" : null, {
    every: EVERY_MS,
  });
  const shown = useMemo(() => {
    const now = Date.now() / 1000;
    const starts = (nodes.data ?? []).map(({ name, uptime }) => ({
      at: now - uptime / 1000,
      label: `${name} has started`,
    }));
    return [...starts, ...changesOf(acts.data)].sort((one, other) => one.at - other.at);
  }, [acts.data, nodes.data]);
  useEffect(() => {
    marks.set(shown);
    return () => marks.set([]);
  }, [shown]);
}

// What the marks of a range are, in words.
export function Marks({ window: [from, end] }) {
  const shown = useStore(marks).filter(({ at }) => at >= from && at <= end);
  if (!shown.length) return null;
  return html`<ul class="legend marks" aria-label="Marks">
    ${shown.slice(-MOST_SHOWN).map(
      ({ at, label }) => html`<li key=${`${at} ${label}`}><i class="mark"></i>
        ${dateTime(at * 1000)} ${label}</li>`,
    )}
    ${shown.length > MOST_SHOWN && html`<li>and ${shown.length - MOST_SHOWN} before</li>`}
  </ul>`;
}
