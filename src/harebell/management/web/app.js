// The frame of all pages: navigation, login, and the page that the address names.
import { render } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { away, slow } from "./lib/api.js";
import { dateTime } from "./lib/format.js";
import { html } from "./lib/html.js";
import { Keys } from "./lib/keys.js";
import { Logo, RelativeTime } from "./lib/pieces.js";
import { usePoll } from "./lib/poll.js";
import { route, to } from "./lib/router.js";
import { expired, has, session } from "./lib/session.js";
import { returned, signOut } from "./lib/sign-in.js";
import { useStore } from "./lib/store.js";
import { motion, theme } from "./lib/theme.js";
import { VhostChoice } from "./lib/vhosts.js";
import { Login, LoginAgain, SigningIn } from "./pages/login.js";
import { NotFound } from "./pages/not-found.js";
import { GROUPS, PAGES } from "./pages/pages.js";

function Group({ title, pages, at, onGo }) {
  const seen = pages.filter(({ label, tag }) => label && has(tag ?? "management"));
  const id = `group-${title.toLowerCase()}`;
  if (!seen.length) return null;
  return html`<div class="nav-group"><p id=${id}>${title}</p>
    <ul aria-labelledby=${id}>${seen.map(
      ({ name, names, label }) => html`
      <li key=${name}><a href=${to(name)} onClick=${onGo}
        aria-current=${at === name || names?.includes(at) ? "page" : undefined}>${label}</a></li>`,
    )}</ul></div>`;
}

function Navigation({ at, open, onGo }) {
  return html`<nav class=${open ? "open" : ""} aria-label="Pages" id="pages">
    <div class="groups">${GROUPS.map(
      (group) => html`<${Group} key=${group.title} ...${group} at=${at} onGo=${onGo} />`,
    )}</div>
  </nav>`;
}

function Choice({ label, of, options }) {
  const chosen = useStore(of);
  return html`<label class="choice">${label}
    <select value=${chosen} onChange=${(event) => of.set(event.currentTarget.value)}>
      ${options.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}
    </select></label>`;
}

const COLOURS = [
  ["system", "System"],
  ["light", "Light"],
  ["dark", "Dark"],
];
const MOTION = [
  ["system", "System"],
  ["none", "None"],
];

// Who is logged in, and what this browser shows alike on every page.
function Account({ user }) {
  return html`<button type="button" class="quiet user" popovertarget="account"
      aria-label=${`Account ${user.name}`}>${user.name}</button>
    <div id="account" class="account" popover="auto">
      <p class="hint">${user.name} · ${user.tags.join(", ")}</p>
      <${Choice} label="Colours" of=${theme} options=${COLOURS} />
      <${Choice} label="Motion" of=${motion} options=${MOTION} />
      <button type="button" class="quiet" onClick=${signOut}>Log out</button>
    </div>`;
}

function Away() {
  const gone = useStore(away);
  const late = useStore(slow);
  if (gone) {
    return html`<p class="away" role="alert">The broker does not answer. This page
      shows what was known last, and asks again by itself.</p>`;
  }
  return (
    late &&
    html`<p class="away" role="status">The broker is slow to answer. This page
    shows what was known last, and waits for it.</p>`
  );
}

const RESOURCES = { memory: "Memory", disk: "Disk space", file_descriptor_limit: "Open files" };

// What is short, so that publishers wait: on every page.
function Alarms() {
  const { data } = usePoll("alarms");
  return (data ?? []).map(
    ({ node, resource, since, reason }) =>
      html`<p class="away" role="alert" key=${node + resource}>
      <strong>${RESOURCES[resource] ?? resource} is short: publishers are blocked</strong> since
      ${" "}${dateTime(since)} (<${RelativeTime} ms=${since} />). ${node}: ${reason}.</p>`,
  );
}

function Page({ names }) {
  const page = PAGES.find(
    ({ name, names: others }) => name === names[0] || others?.includes(names[0]),
  );
  const Shown = page?.choose(names) ?? NotFound;
  return html`<${Shown} key=${names.join("\n")} names=${names} />`;
}

function Frame() {
  const names = useStore(route);
  const user = useStore(session);
  const [open, setOpen] = useState(false);
  const main = useRef(null);
  const first = useRef(true);
  // Before anyone can choose a field of the page.
  useLayoutEffect(() => {
    // Those who hear the page begin with its heading.
    if (!first.current) main.current.focus({ preventScroll: true });
    first.current = false;
    window.scrollTo(0, 0);
  }, [names]);
  return html`<a class="skip" href="#main" onClick=${(event) => {
    event.preventDefault();
    main.current.focus();
  }}>Skip to the page</a>
  <header class="top">
    <button type="button" class="menu" aria-expanded=${open} aria-controls="pages"
      onClick=${() => setOpen(!open)}>Pages</button>
    <a class="brand" href="#/overview"><${Logo} /><span>Harebell</span></a>
    <span class="space"></span>
    <${Keys} /><${VhostChoice} />
    <${Account} user=${user} />
  </header>
  <${Navigation} at=${names[0]} open=${open} onGo=${() => setOpen(false)} />
  <main id="main" tabindex="-1" ref=${main}>
    <${Away} /><${Alarms} /><${Page} names=${names} /></main>
  <${LoginAgain} shown=${useStore(expired)} />`;
}

function App() {
  const user = useStore(session);
  const [back, setBack] = useState(returned);
  const [error, setError] = useState(null);
  const end = (problem) => {
    setBack(false);
    setError(problem);
  };
  if (back) return html`<${SigningIn} onEnd=${end} />`;
  return user === null ? html`<${Login} error=${error} />` : html`<${Frame} />`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
