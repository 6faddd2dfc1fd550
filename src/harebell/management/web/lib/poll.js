// What a path of the API answers, asked for again every few seconds while the page is looked at.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api.js";

const EVERY_MS = 5000;
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 15000;

// When to ask again after so many failures in a row.
function delayOf(failures, every = EVERY_MS) {
  return failures === 0 ? every : Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LAST_RETRY_MS);
}

// Call `load(signal)` now and then again and again; returns a function that ends it.
export function repeat(load, every = EVERY_MS) {
  const stop = new AbortController();
  let failures = 0;
  let timer;
  const step = async () => {
    if (!document.hidden || failures > 0) {
      failures = (await load(stop.signal)) ? 0 : failures + 1;
    }
    if (!stop.signal.aborted) timer = setTimeout(step, delayOf(failures, every));
  };
  step();
  return () => {
    stop.abort();
    clearTimeout(timer);
  };
}

// {data, error, refresh}: the last answer stays when a later request fails. `where` null asks
// nothing.
export function usePoll(where, { every = EVERY_MS, load = get } = {}) {
  const [state, setState] = useState({ where, data: null, error: null });
  const [round, setRound] = useState(0);
  const loader = useRef(load);
  loader.current = load;
  useEffect(() => {
    if (where === null) return undefined;
    return repeat(async (signal) => {
      try {
        const data = await loader.current(where, signal);
        if (!signal.aborted) setState({ where, data, error: null });
        return true;
      } catch (error) {
        if (!signal.aborted) {
          setState((old) => ({ where, data: old.where === where ? old.data : null, error }));
        }
        return !error.away;
      }
    }, every);
  }, [where, every, round]);
  const refresh = useCallback(() => setRound((count) => count + 1), []);
  const shown = state.where === where ? state : { data: null, error: null };
  return { data: shown.data, error: shown.error, refresh };
}
