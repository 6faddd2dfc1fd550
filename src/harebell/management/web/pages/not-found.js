// A page for addresses that lead nowhere.
import { html } from "../lib/html.js";

export function NotFound() {
  return html`<h1>There is no such page</h1><p><a href="#/overview">To the overview</a></p>`;
}
