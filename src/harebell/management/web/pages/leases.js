// The groups that have leased messages of a queue, and a button that takes the messages back.
import { path } from "../lib/api.js";
import { Confirm } from "../lib/confirm.js";
import { count, seconds } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Listing } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { has } from "../lib/session.js";

const HEADS = [
  ...["Group", "Epoch", "Claims", "Messages", "Committed", "Lost", "Timeout", "Holder", ""],
];

function Release({ lease, refresh }) {
  const { vhost, queue, group, messages } = lease;
  return html`<${Confirm} button="Release" tone="quiet"
    title=${`Release group '${group}' of queue '${queue}'?`}
    text=${`The ${count(messages)} messages that '${group}' has claimed go back to '${queue}', and
      its claims count as lost.`}
    where=${`leases/${path(vhost, queue, group)}`} after=${refresh} />`;
}

export function Leases({ vhost, name }) {
  const query = new URLSearchParams({ queue: name });
  const { data, error, refresh } = usePoll(`leases/${path(vhost)}?${query}`);
  return html`<${Listing} id="leases" title="Leases" data=${data} error=${error}
    empty="No group leases messages of this queue."
    heads=${HEADS} keys=${data?.map(({ group }) => group)}
    rows=${data?.map((lease) => [
      lease.group,
      count(lease.epoch),
      count(lease.claims),
      count(lease.messages),
      count(lease.committed),
      count(lease.lost),
      seconds(lease.timeout),
      lease.holder || "none",
      has("policymaker") ? html`<${Release} lease=${lease} refresh=${refresh} />` : "",
    ])} />`;
}
