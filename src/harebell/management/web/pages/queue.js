// One queue: figures, charts, consumers, bindings, settings, messages, and what can be done with
// it.
import { useMemo, useState } from "preact/hooks";
import { path } from "../lib/api.js";
import { Chart } from "../lib/chart.js";
import { bytes, count, perSecond, seconds, short } from "../lib/format.js";
import { Confirm } from "../lib/confirm.js";
import { html } from "../lib/html.js";
import { Awaited, Badge, Fold, Listing, Problem, Section, Tiles } from "../lib/pieces.js";
import { Marks, useMarks } from "../lib/marks.js";
import { usePoll } from "../lib/poll.js";
import { leave, to } from "../lib/router.js";
import { RANGES, sampled, useLevels, useRates, windowOf } from "../lib/samples.js";
import { useTitle } from "../lib/title.js";
import { QueueBindings } from "./bindings.js";
import { Stuck } from "./channels.js";
import { Leases } from "./leases.js";
import { Browse, GetMessages } from "./messages.js";
import { MoveMessages } from "./move-messages.js";
import { Publish } from "./publish.js";
import { RangeChoice, useHistory } from "./overview.js";
import { QueueBadges } from "./queues.js";
import { Settings, settingsOf } from "./settings.js";
import { Waiting } from "./waiting.js";

// The limit of a queue that is in force, for a chart.
function limitsOf(queue, key, scale = 1) {
  return settingsOf(queue)
    .filter(([name, limit]) => name === key && typeof limit === "number")
    .map(([label, limit]) => ({ label, value: limit * scale }));
}

function Charts({ queue, range }) {
  const stream = queue.type === "stream";
  const polled = useMemo(() => Date.now() / 1000, [queue]);
  const ages = useHistory(queue.oldest_seconds ?? (queue.messages_ready ? null : 0), polled);
  const stats = queue.message_stats ?? {};
  const depth = useLevels(queue, {
    ready: queue.messages_ready_details,
    unacknowledged: queue.messages_unacknowledged_details,
  });
  const passed = useRates(queue, {
    in: stats.publish_details,
    out: stats.deliver_get_details,
    acked: stats.ack_details,
  });
  const shown = windowOf(range, queue.messages_ready_details);
  const age = useMemo(() => [{ label: "oldest", points: ages }], [ages]);
  useMarks(queue.vhost);
  const lengths = useMemo(() => limitsOf(queue, "max-length"), [queue]);
  const times = useMemo(() => limitsOf(queue, "message-ttl", 0.001), [queue]);
  return html`<div class="charts">
    <${Chart} title="Messages" series=${depth} window=${shown} limits=${lengths} />
    <${Chart} title="Messages per second" series=${passed} window=${shown}
      format=${perSecond} />
    ${
      !stream &&
      html`<${Chart} title="Age of the oldest ready message" series=${age} window=${shown}
        format=${seconds} limits=${times} />`
    }
  </div><${Marks} window=${shown} />`;
}

function ChannelLink({ name }) {
  return html`<a href=${to("channels", name)}>${name}</a>`;
}

function Consumers({ of }) {
  return html`<${Listing} id="consumers" title="Consumers" empty="This queue has no consumers."
      heads=${["Tag", "Channel", "Acknowledges", "Prefetch", "Unacked", "Active"]}
      rows=${of.map((each) => [
        each.consumer_tag,
        html`<${ChannelLink} name=${each.channel_details?.name ?? ""} />`,
        each.ack_required ? "yes" : "no",
        count(each.prefetch_count),
        count(each.messages_unacknowledged),
        html`${each.active ? "yes" : html`<${Badge}>${each.activity_status}</${Badge}>`}
          <${Stuck} of=${each} />`,
      ])} />`;
}

function Danger({ queue, where, refresh, names }) {
  const { name, vhost, type } = queue;
  return html`<${Section} id="remove" title="Purge or delete"><div class="buttons">
    ${
      type !== "stream" &&
      html`<${Confirm} button="Purge" title=${`Purge queue '${name}'?`} tone="quiet"
      text=${`The ${count(queue.messages_ready)} ready messages of '${name}' in vhost '${vhost}'
        will be gone. Messages that consumers have not acknowledged stay with them.`}
      where=${`${where}/contents`} after=${refresh} />`
    }
    <${Confirm} button="Delete" title=${`Delete queue '${name}'?`} name=${name}
      text=${`The queue in vhost '${vhost}', its bindings and its ${count(queue.messages)} messages
        will be gone.`}
      where=${where} after=${() => leave(names, "queues")} />
  </div></${Section}>`;
}

export function Queue({ names }) {
  const [, vhost, name] = names;
  useTitle(name);
  const [range, setRange] = useState(RANGES[1]);
  const where = `queues/${path(vhost, name)}`;
  const {
    data: queue,
    error,
    refresh,
  } = usePoll(`${where}?${sampled(range, "lengths", "msg_rates")}`);
  const head = html`<p class="crumbs"><a href="#/queues">Queues</a> · ${vhost}</p>`;
  if (!queue) return html`${head}<h1>${name}</h1><${Awaited} error=${error} onRetry=${refresh} />`;
  const stats = queue.message_stats ?? {};
  return html`${head}<div class="title"><h1>${name}</h1><${QueueBadges} queue=${queue} />
      <span class="space"></span>
      <a href=${to("explain", vhost, "amq.default", name)}>Explain a publish</a>
      <a href=${to("topology", vhost, "queue", name)}>Topology</a>
      <${RangeChoice} range=${range} onRange=${setRange} /></div>
    <${Problem} error=${error} />
    <${Tiles} of=${[
      ["Ready", short(queue.messages_ready)],
      ["Unacked", short(queue.messages_unacknowledged)],
      ...(queue.messages_delayed ? [["Delayed", short(queue.messages_delayed)]] : []),
      ...(queue.messages_unselected
        ? [["Selected by no consumer", short(queue.messages_unselected)]]
        : []),
      ...(queue.messages_leased ? [["Leased", short(queue.messages_leased)]] : []),
      ...(queue.messages_replaced ? [["Replaced", short(queue.messages_replaced)]] : []),
      ["In", perSecond(stats.publish_details?.rate)],
      ["Out", perSecond(stats.deliver_get_details?.rate)],
      ["Consumers", count(queue.consumers)],
      ["Size", bytes(queue.message_bytes)],
    ]} />
    <${Charts} queue=${queue} range=${range} />
    <${Consumers} of=${queue.consumer_details ?? []} />
    <${QueueBindings} vhost=${vhost} name=${name} />
    <${Settings} queue=${queue} />
    <${Leases} vhost=${vhost} name=${name} />
    ${
      queue.messages_delayed > 0 &&
      html`<${Waiting} where=${`${where}/waiting`} what="Messages that wait for a retry"
        total=${queue.messages_delayed} vhost=${vhost} queue=${name} />`
    }
    <${Section} id="messages" title="Messages">
      <${Fold} title="Browse without consuming"><${Browse} where=${where} /></${Fold}>
      <${Fold} title="Publish"><${Publish} vhost=${vhost} exchange=""
        routingKey=${name} /></${Fold}>
      ${
        queue.type !== "stream" &&
        html`
        <${Fold} title="Get"><${GetMessages} where=${where} /></${Fold}>`
      }
      <${Fold} title="Move, copy, remove or retry">
        <${MoveMessages} where=${where} stream=${queue.type === "stream"} /></${Fold}>
    </${Section}>
    <${Danger} queue=${queue} where=${where} refresh=${refresh} names=${names} />`;
}
