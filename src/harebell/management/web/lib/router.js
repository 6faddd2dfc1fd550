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
window.addEventListener("hashchange", () => {
  const names = current();
  // Another filter of the same page is no other page.
  if (names.join("\n") !== route.get().join("\n")) route.set(names);
});

// What the address says after the page: a filter, an order.
export function address() {
  return new URLSearchParams(location.hash.split("?")[1] ?? "");
}

// Keep values in the address of this page, for a reload and for the way back; "" is left out.
export function keep(values) {
  const query = address();
  for (const [name, value] of Object.entries(values)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const written = query.toString();
  const hash = location.hash.split("?")[0] + (written ? `?${written}` : "");
  if (hash !== location.hash && !(hash === "" && location.hash === "#")) {
    history.replaceState(history.state, "", hash || "#/overview");
  }
}

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
