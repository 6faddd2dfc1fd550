// The button that repairs what a finding tells of, for those who may: a dialog asks before.
import { useState } from "preact/hooks";
import { get, path } from "./api.js";
import { Confirm } from "./confirm.js";
import { count } from "./format.js";
import { Choice } from "./forms.js";
import { html } from "./html.js";
import { Problem } from "./pieces.js";

function Purge({ of: { vhost, name, repair }, after }) {
  // Not one that was declared anew under its name.
  const where = `queues/${path(vhost, name)}/contents?generation=${repair.generation}`;
  return html`<${Confirm} button="Purge" title=${`Purge queue '${name}'?`}
    text="Its ready messages will be gone." where=${where}
    after=${() => after("The queue was purged.")} />`;
}

function Forget({ of: { vhost, name, repair }, after }) {
  return html`<${Confirm} button="Forget the query" title=${`Forget query '${name}'?`}
    text=${`The last report of user '${repair.user}' will be gone. A query that runs again
      reports again.`}
    where=${`queries/${path(vhost, repair.user, name)}`}
    after=${() => after("The query was forgotten.")} />`;
}

// Connections whose consumers hold messages of a queue; those that hold the most come first.
function holders(consumers) {
  const held = new Map();
  for (const { channel_details: of, messages_unacknowledged: unacked } of consumers) {
    const before = held.get(of.connection_name);
    held.set(of.connection_name, { user: of.user, unacked: unacked + (before?.unacked ?? 0) });
  }
  return [...held]
    .filter(([, { unacked }]) => unacked > 0)
    .sort(([, left], [, right]) => right.unacked - left.unacked)
    .map(([each, { user, unacked }]) => [each, `${each} of user '${user}': ${count(unacked)}`]);
}

function Close({ of: { vhost, name }, after }) {
  const [{ found, error }, setState] = useState({});
  const look = () =>
    get(`queues/${path(vhost, name)}?columns=consumer_details`).then(
      (queue) => setState({ found: holders(queue.consumer_details ?? []) }),
      (problem) => setState({ error: problem }),
    );
  return html`<${Confirm} button="Close a connection" title=${`Consumers of queue '${name}'`}
    text="The messages that the connection holds return to their queues. Most clients connect
      again." onOpen=${look} ready=${found?.length > 0}
    where=${({ connection }) => `connections/${path(connection)}`}
    after=${() => after("The connection was closed.")}>
    <${Problem} error=${error} />
    ${found?.length === 0 && html`<p>No consumer holds messages now.</p>`}
    ${
      found?.length > 0 &&
      html`<${Choice} label="Connection, and messages that it holds" name="connection"
        value=${found[0][0]} options=${found} />`
    }
  </${Confirm}>`;
}

const ACTS = { "queues.purge": Purge, "queries.delete": Forget, "connections.close": Close };

export function Repair({ of }) {
  const [done, setDone] = useState(null);
  const Act = ACTS[of.repair.act];
  if (done !== null) {
    return html`<p role="status">${done} The finding ends when the next looks do not see it.</p>`;
  }
  return Act ? html`<div class="buttons"><${Act} of=${of} after=${setDone} /></div>` : null;
}
