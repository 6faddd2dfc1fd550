// All channels, and one of them with its consumers.
import { useState } from "preact/hooks";
import { path } from "../lib/api.js";
import { Chart } from "../lib/chart.js";
import { empty } from "../lib/empty.js";
import { count, perSecond, rate, seconds } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Awaited, Badge, Listing, Problem, Rows, Tiles } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import { RANGES, sampled, useRates, windowOf } from "../lib/samples.js";
import { Table, figure } from "../lib/table.js";
import { useTitle } from "../lib/title.js";
import { ExchangeLink } from "./bindings.js";
import { RangeChoice } from "./overview.js";

const FIELDS =
  "name,number,user,vhost,confirm,transactional,consumer_count,prefetch_count," +
  "messages_unacknowledged,user_provided_name,stuck_seconds," +
  "message_stats.publish_details.rate," +
  "message_stats.deliver_get_details.rate";

// That deliveries are held for long while nothing happens: their client hangs, or has lost them.
export function Stuck({ of }) {
  const { stuck_seconds: time, messages_unacknowledged: held } = of;
  if (!time) return null;
  const text = `${count(held)} deliveries are not acknowledged, and nothing happens for`;
  const shown = seconds(time);
  return html`<${Badge} tone="bad" title=${`${text} ${shown}`}>stuck ${shown}</${Badge}>`;
}

function Modes({ channel }) {
  return html`${channel.confirm && html`<${Badge} title="publisher confirms">confirm</${Badge}>`}
    ${channel.transactional && html`<${Badge}>transactional</${Badge}>`}`;
}

// The name that the client gave its connection, before the addresses.
function ChannelLink({ channel }) {
  const { name, number, user_provided_name: given } = channel;
  return html`<a href=${to("channels", name)}>${given ? `${given} (${number})` : name}</a>${
    given ? html` <span class="hint">${name}</span>` : null
  }`;
}

const COLUMNS = [
  {
    label: "Name",
    sort: "user_provided_name",
    fixed: true,
    width: "minmax(170px, 3fr)",
    cell: (row) => html`<${ChannelLink} channel=${row} />`,
  },
  {
    label: "State",
    sort: "stuck_seconds",
    wide: true,
    width: "minmax(90px, 1fr)",
    cell: (row) => html`<${Stuck} of=${row} />`,
  },
  { label: "User", sort: "user", cell: (row) => row.user },
  { label: "Vhost", sort: "vhost", wide: true, cell: (row) => row.vhost },
  { label: "Mode", wide: true, cell: (row) => html`<${Modes} channel=${row} />` },
  figure("Consumers", "consumer_count", count, { wide: true, width: "minmax(96px, 1fr)" }),
  figure("Prefetch", "prefetch_count", count, { wide: true, width: "minmax(80px, 1fr)" }),
  figure("Unacked", "messages_unacknowledged", count, { width: "minmax(80px, 1fr)" }),
  figure("In/s", "message_stats.publish_details.rate", rate, { wide: true }),
  figure("Out/s", "message_stats.deliver_get_details.rate", rate, { wide: true }),
];

export function Channels() {
  useTitle("Channels");
  return html`<div class="title"><h1>Channels</h1></div>
    <${Table} label="Channels" name="channels" where="channels" columns=${COLUMNS} fields=${FIELDS}
      sorted=${{ by: "user_provided_name", reverse: false }}
      empty=${empty("channels")} />`;
}

function Passed({ channel, range }) {
  const stats = channel.message_stats ?? {};
  const series = useRates(channel, {
    published: stats.publish_details,
    delivered: stats.deliver_get_details,
    acked: stats.ack_details,
  });
  return html`<div class="charts">
    <${Chart} title="Messages per second" series=${series} format=${perSecond}
      window=${windowOf(range, stats.publish_details)} />
    <div class="chart"><h3>Publishes to</h3>
      <${Rows} label="Exchanges that it publishes to"
        heads=${["Exchange", "Messages", "Per second"]}
        empty="It has published nothing."
        rows=${(channel.publishes ?? []).map(({ exchange, stats: passed }) => [
          html`<${ExchangeLink} vhost=${exchange.vhost} name=${exchange.name} />`,
          count(passed.publish),
          rate(passed.publish_details?.rate),
        ])} /></div>
  </div>`;
}

export function Channel({ names: [, name] }) {
  useTitle(name);
  const [range, setRange] = useState(RANGES[1]);
  const query = sampled(range, "msg_rates");
  const { data, error, refresh } = usePoll(`channels/${path(name)}?${query}`);
  const head = html`<p class="crumbs"><a href="#/channels">Channels</a></p>`;
  if (!data) {
    return html`${head}<h1>${name}</h1><${Awaited} error=${error} onRetry=${refresh} />`;
  }
  const link = data.connection_details?.name ?? data.connection;
  return html`${head}<div class="title"><h1>${name}</h1><${Modes} channel=${data} />
      <${Stuck} of=${data} />
      <span class="space"></span><${RangeChoice} range=${range} onRange=${setRange} /></div>
    <p>of the connection <a href=${to("connections", link)}>${link}</a></p>
    <${Problem} error=${error} />
    <${Tiles} of=${[
      ["User", data.user],
      ["Vhost", data.vhost],
      ["Prefetch", count(data.prefetch_count)],
      ["Unacked", count(data.messages_unacknowledged)],
      ["Unconfirmed", count(data.messages_unconfirmed)],
      ["Consumers", count(data.consumer_count)],
    ]} />
    <${Passed} channel=${data} range=${range} />
    <${Listing} id="consumers" title="Consumers" empty="It has no consumer."
        heads=${["Tag", "Queue", "Acknowledges", "Prefetch", "Unacked", "State"]}
        rows=${(data.consumer_details ?? []).map((each) => [
          each.consumer_tag,
          html`<a href=${to("queues", each.queue.vhost, each.queue.name)}>${each.queue.name}</a>`,
          each.ack_required ? "yes" : "no",
          count(each.prefetch_count),
          count(each.messages_unacknowledged),
          html`<${Stuck} of=${each} />`,
        ])} />`;
}
