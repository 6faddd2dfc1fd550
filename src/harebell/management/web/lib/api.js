// Requests to the HTTP API: the login, errors as sentences, and a broker that is away.
import { authorizationOf, expired, remember, session } from "./session.js";
import { store } from "./store.js";

const SLOW_MS = 4000;
const LAST_MS = 20000;

export class ApiError extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }

  // The broker gave no answer at all, or a proxy before it says that it is away.
  get away() {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

// Whether the last request got no answer.
export const away = store(false);

// Whether a request waits for its answer for long.
export const slow = store(false);
const waiting = new Set();

// Note that a request waits; returns a function that notes its end.
function watched() {
  const timer = setTimeout(() => {
    waiting.add(timer);
    slow.set(true);
  }, SLOW_MS);
  return () => {
    clearTimeout(timer);
    waiting.delete(timer);
    slow.set(waiting.size > 0);
  };
}

// A path of the API from names, each of which may have any character.
export function path(...names) {
  return names.map((name) => encodeURIComponent(name)).join("/");
}

async function sent(method, where, body, authorization, signal) {
  const last = AbortSignal.timeout(LAST_MS);
  const options = {
    method,
    headers: { authorization },
    // Without cookies, and without the browser's own form for a refused login.
    credentials: "omit",
    cache: "no-store",
    signal: signal ? AbortSignal.any([signal, last]) : last,
  };
  if (body !== undefined) {
    options.body = typeof body === "string" ? body : JSON.stringify(body);
    options.headers["content-type"] = "application/json";
  }
  const answered = watched();
  try {
    const answer = await fetch(`api/${where}`, options);
    away.set(false);
    return answer;
  } catch (error) {
    if (signal?.aborted) throw error;
    if (error.name === "TimeoutError") {
      throw new ApiError(0, `The broker did not answer within ${LAST_MS / 1000} seconds.`);
    }
    away.set(true);
    throw new ApiError(0, "The broker does not answer.");
  } finally {
    answered();
  }
}

async function problemOf(answer) {
  let told = {};
  try {
    told = await answer.json();
  } catch {
    // A proxy answers with a page of its own.
  }
  const reason = told.reason ?? told.error ?? `${answer.status} ${answer.statusText}`;
  const error = new ApiError(
    answer.status,
    typeof reason === "string" ? reason : JSON.stringify(reason),
  );
  error.refusesLogin = answer.status === 401 && told.error === "not_authorized";
  return error;
}

function nextLogin(signal) {
  return new Promise((resolve, reject) => {
    const stop = session.subscribe((user) => {
      stop();
      if (user !== null) resolve();
      // What one user asked for is not done in the name of the next one.
      else reject(new ApiError(401, "You are logged out."));
    });
    signal?.addEventListener("abort", () => {
      stop();
      reject(signal.reason);
    });
  });
}

// Send a request and return the response. When the login is refused, the form for it opens over the
// page, and the request goes on when the user has logged in again.
export async function ask(method, where, body, signal) {
  for (;;) {
    const user = session.get();
    if (user === null) throw new ApiError(401, "You are logged out.");
    const answer = await sent(method, where, body, user.authorization, signal);
    if (answer.ok) return answer;
    const error = await problemOf(answer);
    if (!error.refusesLogin) throw error;
    if (session.get() !== user) continue;
    expired.set(true);
    await nextLogin(signal);
  }
}

export async function get(where, signal) {
  const answer = await ask("GET", where, undefined, signal);
  try {
    return await answer.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    if (error instanceof SyntaxError) {
      throw new ApiError(answer.status, "The answer of the broker is not JSON.");
    }
    throw new ApiError(0, "The answer of the broker broke off.");
  }
}

export async function send(method, where, body) {
  const answer = await ask(method, where, body);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

// Log in, or throw why not.
export function logIn(name, password) {
  return enter(authorizationOf(name, password), name);
}

// Log in with an OAuth 2 token, which stands for a user until it expires.
export function logInByToken(token) {
  return enter(`Bearer ${token.trim()}`, "of the token");
}

// Log in with what the broker is to be sent. `account` has what an issuer gave beside the token.
export async function enter(authorization, name, account) {
  const answer = await sent("GET", "whoami", undefined, authorization);
  if (!answer.ok) {
    const error = await problemOf(answer);
    if (error.message === "Login failed") {
      error.message = authorization.startsWith("Bearer")
        ? "The token is not accepted: it may have expired."
        : "The user or the password is wrong.";
    } else if (error.message === "Not management user") {
      error.message =
        `The user '${name}' has no tag for management: ` +
        `\`harebell users tags ${name} management\` gives it one.`;
    }
    throw error;
  }
  const user = await answer.json();
  remember({ name: user.name, tags: user.tags, authorization, account });
}
