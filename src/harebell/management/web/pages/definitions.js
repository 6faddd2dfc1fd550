// Definitions as a file: users, vhosts, permissions, policies, queues, exchanges and bindings.
import { ask, path, send } from "../lib/api.js";
import { Choice, Field, Form } from "../lib/forms.js";
import { bytes } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Section } from "../lib/pieces.js";
import { useTitle } from "../lib/title.js";
import { useVhosts } from "../lib/vhosts.js";

function save(text, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

const whereOf = (vhost) => (vhost === "" ? "definitions" : `definitions/${path(vhost)}`);

function Whole() {
  const names = useVhosts();
  return html`<${Choice} label="Of" name="vhost" value=""
    options=${[["", "the whole broker"], ...names.map((name) => [name, `vhost ${name}`])]} />`;
}

async function download({ vhost }) {
  const answer = await ask("GET", whereOf(vhost));
  const text = await answer.text();
  save(text, `definitions-${new Date().toISOString().slice(0, 10)}.json`);
  return `${bytes(text.length)} were saved.`;
}

async function upload({ vhost, file }) {
  if (!file.size) throw new Error("Choose a file first.");
  const text = await file.text();
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Error(`'${file.name}' is not JSON: ${error.message}`);
  }
  await send("POST", whereOf(vhost), text);
  return `What '${file.name}' declares is there.`;
}

export function Definitions() {
  useTitle("Definitions");
  return html`<div class="title"><h1>Definitions</h1></div>
    <${Section} id="download" title="Download">
      <p class="hint">Users, vhosts, permissions, policies, queues, exchanges and bindings, in
        RabbitMQ's JSON. Messages are not in it.</p>
      <${Form} label="Download" button="Download" action=${download}><${Whole} /></${Form}>
    </${Section}>
    <${Section} id="upload" title="Upload">
      <p class="hint">What the file declares is added or replaced, all of it or nothing. What it
        does not name stays.</p>
      <${Form} label="Upload" button="Upload" action=${upload}><${Whole} />
        <${Field} label="File" name="file" type="file" accept=".json,application/json" />
      </${Form}>
    </${Section}>`;
}
