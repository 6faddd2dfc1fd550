// Signing in at the issuer that the broker names: OpenID Connect, by code with PKCE (RFC 7636).
import { ApiError, enter } from "./api.js";
import { address } from "./router.js";
import { expired, forget, session } from "./session.js";

// What the broker says about it: the answer of GET /api/auth.
export const issuer = JSON.parse(document.querySelector("meta[name=sign-in]").content);

// Whether a name and a password can be accepted.
export const passwords = !issuer.oauth_enabled || !issuer.oauth_disable_basic_auth;

const KEY = "harebell.sign-in";
// A token is renewed this long before it ends, and one that lives for less after half of its time.
const EARLY_MS = 60000;
const TRIES_MS = 15000;

function base64url(bytes) {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function secret() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

// The address of a path of the web interface, whatever the prefix is.
function here(path) {
  return new URL(path, location.origin + location.pathname).href;
}

async function asked(what, where, options) {
  let answer;
  try {
    answer = await fetch(where, { credentials: "omit", cache: "no-store", ...options });
  } catch {
    const server = new URL(where).origin;
    throw new ApiError(
      0,
      `${server} gives no ${what} to a page of ${location.origin}: it is away, it does not ` +
        "allow this origin (CORS), or auth_oauth2.token_endpoint is not configured.",
    );
  }
  const told = await answer.json().catch(() => ({}));
  if (answer.ok) return told;
  const reason = told.error_description ?? told.error ?? `${answer.status} ${answer.statusText}`;
  throw new ApiError(answer.status, `The issuer gives no ${what}: ${reason}`);
}

// The addresses of the issuer: those that are configured, and else those of its metadata.
async function endpoints() {
  const configured = {
    authorize: issuer.oauth_authorization_endpoint,
    token: issuer.oauth_token_endpoint,
    leave: issuer.oauth_end_session_endpoint,
  };
  if (configured.authorize && configured.token) return configured;
  const told = await asked("metadata", issuer.oauth_metadata_url);
  const found = {
    authorize: configured.authorize ?? told.authorization_endpoint,
    token: configured.token ?? told.token_endpoint,
    leave: configured.leave ?? told.end_session_endpoint,
  };
  if (found.authorize && found.token) return found;
  throw new ApiError(0, `${issuer.oauth_metadata_url} names no authorization and token endpoint.`);
}

// Go to the issuer. It sends the browser back to the page that was open.
export async function signIn() {
  if (!crypto.subtle) {
    throw new ApiError(0, `Signing in needs https: browsers make no keys for ${location.origin}.`);
  }
  const places = await endpoints();
  const begun = {
    ...{ state: secret(), nonce: secret(), verifier: secret() },
    ...{ places, hash: /^#\/(login-callback|sign-in)/.test(location.hash) ? "" : location.hash },
  };
  sessionStorage.setItem(KEY, JSON.stringify(begun));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(begun.verifier));
  const url = new URL(places.authorize);
  const parameters = {
    ...issuer.oauth_authorization_endpoint_params,
    response_type: "code",
    client_id: issuer.oauth_client_id,
    redirect_uri: here("js/oidc-oauth/login-callback.html"),
    scope: issuer.oauth_scopes,
    state: begun.state,
    nonce: begun.nonce,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  location.assign(url);
}

function tokens(places, parameters) {
  const body = new URLSearchParams({
    ...issuer.oauth_token_endpoint_params,
    client_id: issuer.oauth_client_id,
    ...parameters,
  });
  return asked("token", places.token, { method: "POST", body });
}

// What an identity token says. It came from the issuer itself, over a connection of its own.
function claims(token) {
  const part = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
  return JSON.parse(atob(part));
}

function accept(given, places, before) {
  const account = {
    places,
    identity: given.id_token ?? before?.identity,
    refresh: given.refresh_token ?? before?.refresh,
    ends: given.expires_in ? Date.now() + given.expires_in * 1000 : 0,
  };
  return enter(`Bearer ${given.access_token}`, "of the token", account);
}

// Whether the issuer has just sent the browser back.
export function returned() {
  return location.hash.startsWith("#/login-callback?");
}

// Get the tokens for the code with which the issuer has sent the browser back.
export async function finish() {
  const told = address();
  const begun = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  sessionStorage.removeItem(KEY);
  history.replaceState(null, "", begun?.hash || "#/overview");
  if (begun === null || told.get("state") !== begun.state) {
    throw new ApiError(0, "This tab has not asked the issuer to sign in: sign in again.");
  }
  if (told.has("error")) {
    const reason = told.get("error_description") ?? told.get("error");
    throw new ApiError(0, `The issuer did not sign you in: ${reason}`);
  }
  const given = await tokens(begun.places, {
    grant_type: "authorization_code",
    code: told.get("code") ?? "",
    code_verifier: begun.verifier,
    redirect_uri: here("js/oidc-oauth/login-callback.html"),
  });
  if (given.id_token && claims(given.id_token).nonce !== begun.nonce) {
    throw new ApiError(0, "The issuer answered another sign-in: sign in again.");
  }
  await accept(given, begun.places);
  // The page of the address is the one from before.
  window.dispatchEvent(new HashChangeEvent("hashchange"));
  others.postMessage(session.get());
}

// Log out, also at the issuer if it has a place for that.
export function signOut() {
  const { places, identity } = session.get()?.account ?? {};
  forget();
  if (!places?.leave) return;
  const url = new URL(places.leave);
  url.searchParams.set("client_id", issuer.oauth_client_id);
  if (identity) url.searchParams.set("id_token_hint", identity);
  url.searchParams.set("post_logout_redirect_uri", here("js/oidc-oauth/logout-callback.html"));
  location.assign(url);
}

let timer;

// Renew the token before it ends, as long as the issuer allows it.
function renewInTime(user) {
  clearTimeout(timer);
  if (!user?.account?.refresh || !user.account.ends) return;
  const left = user.account.ends - Date.now();
  timer = setTimeout(() => renew(user), Math.max(left - EARLY_MS, left / 2, 0));
}

async function renew(user) {
  const { places, refresh } = user.account;
  try {
    const given = await tokens(places, { grant_type: "refresh_token", refresh_token: refresh });
    if (session.get() === user) await accept(given, places, user.account);
  } catch (error) {
    // The form for the login opens when the token has ended.
    const again = error.away && session.get() === user && Date.now() < user.account.ends;
    if (again) timer = setTimeout(() => renew(user), TRIES_MS);
  }
}

// Tabs of this browser whose login has ended take that of the tab where the same user signs in.
const others = new BroadcastChannel("harebell.sign-in");
others.onmessage = ({ data }) => {
  if (expired.get() && data.name === session.get()?.name) {
    enter(data.authorization, data.name, data.account).catch(() => {});
  }
};

session.subscribe(renewInTime);
renewInTime(session.get());
