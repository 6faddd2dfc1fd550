// One connection: what passes, its client, its channels, and a button that closes it.
import { useState } from "preact/hooks";
import { path } from "../lib/api.js";
import { Chart } from "../lib/chart.js";
import { Confirm } from "../lib/confirm.js";
import { bytes, count, seconds } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Awaited, Listing, Members, Problem, Section, Tiles } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { leave, to } from "../lib/router.js";
import { RANGES, sampled, useRates, windowOf } from "../lib/samples.js";
import { useTitle } from "../lib/title.js";
import { StateBadge } from "./connections.js";
import { RangeChoice } from "./overview.js";

const perSecond = (value) => `${bytes(value)}/s`;

function Channels({ where }) {
  const { data, error } = usePoll(`${where}/channels`);
  return html`<${Listing} id="channels" title="Channels" error=${error}
      heads=${["Number", "State", "Consumers", "Prefetch", "Unacked"]}
      rows=${(data ?? []).map((each) => [
        html`<a href=${to("channels", each.name)}>${each.number}</a>`,
        each.state,
        count(each.consumer_count),
        count(each.prefetch_count),
        count(each.messages_unacknowledged),
      ])} />`;
}

function Passed({ connection, range }) {
  const series = useRates(connection, {
    received: connection.recv_oct_details,
    sent: connection.send_oct_details,
  });
  const { capabilities, ...client } = connection.client_properties ?? {};
  return html`<div class="charts">
    <${Chart} title="Bytes per second" series=${series} format=${perSecond}
      window=${windowOf(range, connection.recv_oct_details)} />
    <div class="chart"><h3>Client</h3><${Members} of=${client} /></div>
  </div>`;
}

export function Connection({ names }) {
  const [, name] = names;
  useTitle(name);
  const [range, setRange] = useState(RANGES[1]);
  const where = `connections/${path(name)}`;
  const { data, error, refresh } = usePoll(`${where}?${sampled(range, "data_rates")}`);
  const head = html`<p class="crumbs"><a href="#/connections">Connections</a></p>`;
  if (!data) {
    return html`${head}<h1>${name}</h1><${Awaited} error=${error} onRetry=${refresh} />`;
  }
  return html`${head}<div class="title"><h1>${name}</h1><${StateBadge} state=${data.state} />
      <span class="space"></span><${RangeChoice} range=${range} onRange=${setRange} /></div>
    <${Problem} error=${error} />
    <${Tiles} of=${[
      ["User", data.user],
      ["Vhost", data.vhost],
      ["AMQP", data.protocol?.replace("AMQP ", "")],
      ["TLS", data.ssl ? (data.ssl_protocol ?? "yes") : "no"],
      ["Heartbeat", seconds(data.timeout)],
      ["Connected for", seconds(data.connected_seconds)],
      ["Received", bytes(data.recv_oct)],
      ["Sent", bytes(data.send_oct)],
    ]} />
    <${Passed} connection=${data} range=${range} />
    <${Channels} where=${where} />
    <${Section} id="close" title="Close"><div class="buttons">
      <${Confirm} button="Close connection" title=${`Close connection '${name}'?`}
        text=${`The client of user '${data.user}' gets 320 CONNECTION_FORCED. Most clients
          connect again.`}
        where=${where} after=${() => leave(names, "connections")} />
    </div></${Section}>`;
}
