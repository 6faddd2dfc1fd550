// The last lines of the log, as they come.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { get } from "../lib/api.js";
import { count } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Badge, Problem } from "../lib/pieces.js";
import { repeat } from "../lib/poll.js";
import { useTitle } from "../lib/title.js";

const KEPT = 500;
const EVERY_MS = 1000;
const LEVELS = ["debug", "info", "warning", "error"];
const TONES = { warning: "warn", error: "bad" };

// {lines, error}: the last lines of a level, until it pauses.
function useLog(level, paused) {
  const [state, setState] = useState({ lines: [], error: null });
  const last = useRef(0);
  useLayoutEffect(() => {
    last.current = 0;
    setState({ lines: [], error: null });
  }, [level]);
  // No line comes once the page says that it is paused.
  useLayoutEffect(() => {
    if (paused) return undefined;
    return repeat(async (signal) => {
      try {
        const query = `level=${level}&after=${last.current}&limit=${KEPT}`;
        let later = await get(`logs?${query}`, signal);
        if (signal.aborted) return true;
        if (last.current > 0 && !later.length) {
          // The numbers of a broker that was restarted begin again.
          const newest = await get(`logs?level=${level}&limit=1`, signal);
          if (signal.aborted) return true;
          if (newest.length && newest[0].number < last.current) {
            last.current = 0;
            later = await get(`logs?level=${level}&after=0&limit=${KEPT}`, signal);
            if (signal.aborted) return true;
          }
        }
        if (later.length) last.current = later.at(-1).number;
        setState(({ lines }) => ({
          lines: later.length ? [...lines, ...later].slice(-KEPT) : lines,
          error: null,
        }));
        return true;
      } catch (error) {
        if (!signal.aborted) setState(({ lines }) => ({ lines, error }));
        return !error.away;
      }
    }, EVERY_MS);
  }, [level, paused]);
  return state;
}

function Line({ line }) {
  return html`<li class=${`log-line ${line.level}`}>
    <time datetime=${line.time}>${line.time}</time>
    <${Badge} tone=${TONES[line.level] ?? ""}>${line.level}</${Badge}>
    <span class="pid">${line.pid}</span><span class="text">${line.text}</span></li>`;
}

export function Logs() {
  useTitle("Log");
  const [level, setLevel] = useState("info");
  const [paused, setPaused] = useState(false);
  const [text, setText] = useState("");
  const { lines, error } = useLog(level, paused);
  const view = useRef(null);
  const atEnd = useRef(true);
  const list = useRef(null);
  const top = useRef(0);
  const follow = () => {
    if (view.current && atEnd.current) view.current.scrollTop = view.current.scrollHeight;
  };
  useEffect(follow, [lines, text]);
  // Lines get their real height when they come into view: then the end is further down.
  useEffect(() => {
    const watch = new ResizeObserver(follow);
    watch.observe(list.current);
    watch.observe(view.current);
    return () => watch.disconnect();
  }, []);
  const wanted = text.toLowerCase();
  const shown = wanted
    ? lines.filter((line) => `${line.text} ${line.category}`.toLowerCase().includes(wanted))
    : lines;
  return html`<div class="title"><h1>Log</h1><span class="space"></span>
      <label class="choice">Level
        <select value=${level} onChange=${(event) => setLevel(event.currentTarget.value)}>
          ${LEVELS.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}
        </select></label>
      <button type="button" class="quiet" aria-pressed=${paused}
        onClick=${() => setPaused(!paused)}>${paused ? "Go on" : "Pause"}</button></div>
    <div class="filters"><label for="log-filter">Filter</label>
      <input id="log-filter" type="search" placeholder="part of the line" autocomplete="off"
        spellcheck=${false} value=${text}
        onInput=${(event) => setText(event.currentTarget.value)} />
      <span class="total" role="status">${count(shown.length)} ${
        shown.length === 1 ? "line" : "lines"
      }${paused ? ", paused" : ""}</span>
    </div>
    <${Problem} error=${error} />
    <div class="scroll log" tabindex="0" role="region" aria-label="Log" ref=${view}
      onScroll=${({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        // Only who scrolls up leaves the end; that it moves down is no scrolling.
        if (scrollTop < top.current) atEnd.current = false;
        if (scrollTop + clientHeight >= scrollHeight - 20) atEnd.current = true;
        top.current = scrollTop;
      }}>
      <ol ref=${list}>${shown.map((line) => html`<${Line} key=${line.number} line=${line} />`)}</ol>
      ${!shown.length && html`<p class="empty">No line yet.</p>`}
    </div>
    <p class="hint">The broker keeps its last 1,000 lines in memory for this page. Its own level
      (<code>log_level</code>) decides what there is.</p>`;
}
