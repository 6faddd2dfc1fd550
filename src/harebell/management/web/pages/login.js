// The login, as a page, and as a form over the page when the broker refuses a login it had
// accepted.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { logIn, logInByToken } from "../lib/api.js";
import { Field, Form } from "../lib/forms.js";
import { Fold, Logo, Problem } from "../lib/pieces.js";
import { html } from "../lib/html.js";
import { session } from "../lib/session.js";
import { finish, issuer, passwords, signIn, signOut } from "../lib/sign-in.js";

function LoginForm({ name = "" }) {
  return html`<${Form} label="Login" button="Log in"
    action=${({ user, password }) => logIn(user, password)}>
    <${Field} label="User" name="user" value=${name} required wide autocomplete="username" />
    <${Field} label="Password" name="password" type="password" wide
      autocomplete="current-password" />
  </${Form}>`;
}

function TokenForm() {
  return html`<${Fold} title="With an OAuth 2 token">
    <${Form} label="Login by token" button="Log in with the token"
      action=${({ token }) => logInByToken(token)}>
      <${Field} label="Token" name="token" type="password" required wide />
    </${Form}></${Fold}>`;
}

// The name of the issuer's server says where the button leads to.
function Account({ action }) {
  if (!issuer.oauth_enabled) return null;
  const where = new URL(issuer.oauth_authorization_endpoint ?? issuer.oauth_metadata_url).host;
  return html`<${Form} label="Sign in" button="Sign in with your account" action=${action}>
    <p class="hint">${where} asks who you are, and sends you back.</p></${Form}>`;
}

export function Login({ error = null }) {
  const main = useRef(null);
  useLayoutEffect(() => {
    document.title = "Log in · Harebell";
    main.current.querySelector(issuer.oauth_enabled ? "button" : "input").focus();
    if (location.hash === "#/sign-in") main.current.querySelector("button").click();
  }, []);
  return html`<main class="login" ref=${main}><h1><${Logo} />Harebell</h1>
    <${Problem} error=${error} />
    <${Account} action=${signIn} />
    ${passwords && html`<${LoginForm} />`}<${TokenForm} />
    ${passwords && html`<p class="hint">A new broker has the user <code>guest</code> with the
      password <code>guest</code>, for this machine alone.</p>`}</main>`;
}

// The issuer has sent the browser back with a code, for which there is a token.
export function SigningIn({ onEnd }) {
  useEffect(() => {
    finish().then(() => onEnd(null), onEnd);
  }, []);
  return html`<main class="login"><h1><${Logo} />Harebell</h1>
    <p role="status">Signing in…</p></main>`;
}

// In a tab of its own: this one keeps what was typed, and takes over the login of the other one.
function signInBeside() {
  open("#/sign-in", "_blank", "noopener");
  return "Sign in in the other tab. This page goes on then by itself.";
}

export function LoginAgain({ shown }) {
  const dialog = useRef(null);
  useEffect(() => {
    if (shown) dialog.current.showModal();
    else dialog.current.close();
  }, [shown]);
  return html`<dialog ref=${dialog} aria-labelledby="again"
    onCancel=${(event) => event.preventDefault()}>
    <h2 id="again">Log in again</h2>
    <p>The broker no longer accepts the login. The page behind this form keeps what you have
      typed.</p>
    ${shown && html`<${Account} action=${signInBeside} />
      ${passwords && html`<${LoginForm} name=${session.get()?.name} />`}<${TokenForm} />`}
    <button type="button" class="quiet" onClick=${signOut}>Log out</button>
  </dialog>`;
}
