// The login, as a page, and as a form over the page when the broker refuses a login it had
// accepted.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { logIn, logInByToken, logOut } from "../lib/api.js";
import { Field, Form } from "../lib/forms.js";
import { Fold } from "../lib/pieces.js";
import { html } from "../lib/html.js";
import { session } from "../lib/session.js";

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

export function Login() {
  useLayoutEffect(() => {
    document.title = "Log in · Harebell";
    document.querySelector("input[name=user]").focus();
  }, []);
  return html`<main class="login"><h1>Harebell</h1><${LoginForm} /><${TokenForm} />
    <p class="hint">A new broker has the user <code>guest</code> with the password
      ${" "}<code>guest</code>,      for this machine alone.</p></main>`;
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
    ${shown && html`<${LoginForm} name=${session.get()?.name} /><${TokenForm} />`}
    <button type="button" class="quiet" onClick=${logOut}>Log out</button>
  </dialog>`;
}
