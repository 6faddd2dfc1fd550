// A value that pages share, and that redraws them when it changes.
import { useEffect, useReducer } from "preact/hooks";

export function store(value) {
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (next === value) return;
      value = next;
      for (const listener of [...listeners]) listener(value);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore(shared) {
  const [, redraw] = useReducer((count) => count + 1, 0);
  const value = shared.get();
  useEffect(() => {
    // Effects run after the page is painted: the value may have changed since it was drawn.
    if (shared.get() !== value) redraw();
    return shared.subscribe(redraw);
  }, [shared]);
  return value;
}
