// The page that the address names: #/queues/%2F/orders -> ["queues", "/", "orders"].
import { store } from "./store.js";
import { path } from "./api.js";

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function current() {
  const segments = location.hash.replace(/^#\/?/, "").split("?")[0].split("/");
  return segments[0] === "" ? ["overview"] : segments.map(decoded);
}

export const route = store(current());
window.addEventListener("hashchange", () => route.set(current()));

// The address of a page.
export function to(...names) {
  return `#/${path(...names)}`;
}

export function go(...names) {
  location.hash = to(...names);
}

// Go from a page to another one, unless the user has gone elsewhere while an answer was awaited.
export function leave(page, ...names) {
  if (route.get() === page) go(...names);
}
