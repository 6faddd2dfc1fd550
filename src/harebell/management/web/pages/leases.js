// The groups that have leased messages of a queue, and a button that takes the messages back.
import { useState } from "preact/hooks";
import { path } from "../lib/api.js";
import { Confirm } from "../lib/confirm.js";
import { count, seconds } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Listing, Problem, Rows } from "../lib/pieces.js";
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

// The open claims of a group, each with a button that takes it back, and those after it.
function Claims({ lease, refresh }) {
  const { vhost, queue, group } = lease;
  const where = `leases/${path(vhost, queue, group)}`;
  const { data, error, refresh: again } = usePoll(where);
  const done = () => {
    again();
    refresh();
  };
  const after = (number) => data.open.filter((each) => each.number >= number);
  return html`<${Problem} error=${error} />${
    data &&
    html`<${Rows} label=${`Claims of ${group}`} heads=${["Claim", "Messages", ""]}
      empty="No claim is open." keys=${data.open.map(({ number }) => number)}
      rows=${data.open.map(({ number, messages }) => [
        count(number),
        count(messages),
        html`<${Confirm} button="Release" tone="quiet"
          title=${`Release claim ${number} of group '${group}'?`}
          text=${`Claim ${number} and those after it go back to '${queue}' and count as lost:
            ${count(after(number).length)} claims.`}
          where=${`${where}?claim=${number}`} after=${done} />`,
      ])} />`
  }`;
}

export function Leases({ vhost, name }) {
  const query = new URLSearchParams({ queue: name });
  const { data, error, refresh } = usePoll(`leases/${path(vhost)}?${query}`);
  const [opened, setOpened] = useState(null);
  const lease = data?.find(({ group }) => group === opened);
  const claims = ({ group, claims: open }) =>
    open && has("policymaker")
      ? html`<button type="button" class="quiet" aria-expanded=${group === opened}
          onClick=${() => setOpened(group === opened ? null : group)}>${count(open)}</button>`
      : count(open);
  return html`<${Listing} id="leases" title="Leases" data=${data} error=${error}
    empty="No group leases messages of this queue."
    heads=${HEADS} keys=${data?.map(({ group }) => group)}
    rows=${data?.map((each) => [
      each.group,
      count(each.epoch),
      claims(each),
      count(each.messages),
      count(each.committed),
      count(each.lost),
      seconds(each.timeout),
      each.holder || "none",
      has("policymaker") ? html`<${Release} lease=${each} refresh=${refresh} />` : "",
    ])}>
    ${lease && html`<${Claims} key=${opened} lease=${lease} refresh=${refresh} />`}
  </${Listing}>`;
}
