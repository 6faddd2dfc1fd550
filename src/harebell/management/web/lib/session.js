// Who is logged in in this tab. The login is kept by the tab alone, and sent with each request.
import { store } from "./store.js";

const KEY = "harebell.login";

function restored() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY));
  } catch {
    return null;
  }
}

// {name, tags, authorization, account}, or null before the login. An account is what an issuer gave
// beside the token: how to renew it, and how to log out there.
export const session = store(restored());
// Whether the broker has refused a login that it had accepted before.
export const expired = store(false);

export function authorizationOf(name, password) {
  const bytes = new TextEncoder().encode(`${name}:${password}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

export function remember(user) {
  sessionStorage.setItem(KEY, JSON.stringify(user));
  session.set(user);
  expired.set(false);
}

export function forget() {
  sessionStorage.removeItem(KEY);
  session.set(null);
  expired.set(false);
}

const RANKS = {
  management: ["management", "policymaker", "monitoring", "administrator"],
  policymaker: ["policymaker", "administrator"],
  monitoring: ["monitoring", "administrator"],
  administrator: ["administrator"],
};

// Whether the user has the rights of a tag.
export function has(tag) {
  const tags = session.get()?.tags ?? [];
  return RANKS[tag].some((name) => tags.includes(name));
}
