// One exchange: what passes, where it routes to, and a form to publish.
import { useState } from "preact/hooks";
import { path } from "../lib/api.js";
import { Chart } from "../lib/chart.js";
import { Confirm } from "../lib/confirm.js";
import { perSecond } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Fold, Members, Problem, Section } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { leave, to } from "../lib/router.js";
import { RANGES, sampled, useRates, windowOf } from "../lib/samples.js";
import { useTitle } from "../lib/title.js";
import { DEFAULT_EXCHANGE, ExchangeBindings, exchangeName } from "./bindings.js";
import { ExchangeBadges } from "./exchanges.js";
import { RangeChoice } from "./overview.js";
import { Publish } from "./publish.js";
import { Waiting } from "./waiting.js";

function Passed({ exchange, range }) {
  const stats = exchange.message_stats ?? {};
  const series = useRates(exchange, {
    in: stats.publish_in_details,
    out: stats.publish_out_details,
  });
  return html`<div class="charts">
    <${Chart} title="Messages per second" series=${series} format=${perSecond}
      window=${windowOf(range, stats.publish_in_details)} />
    <div class="chart"><h3>Arguments</h3><${Members} of=${exchange.arguments} /></div>
  </div>`;
}

export function Exchange({ names }) {
  const [, vhost, shown] = names;
  const name = shown === DEFAULT_EXCHANGE ? "" : shown;
  useTitle(exchangeName(name));
  const [range, setRange] = useState(RANGES[1]);
  const where = `exchanges/${path(vhost, shown)}`;
  const { data: exchange, error, refresh } = usePoll(`${where}?${sampled(range, "msg_rates")}`);
  const head = html`<p class="crumbs"><a href="#/exchanges">Exchanges</a> · ${vhost}</p>`;
  if (!exchange) {
    return html`${head}<h1>${exchangeName(name)}</h1>
      <${Problem} error=${error} onRetry=${refresh} />`;
  }
  const own = name !== "" && !name.startsWith("amq.");
  return html`${head}<div class="title"><h1>${exchangeName(name)}</h1>
      <${ExchangeBadges} exchange=${exchange} />
      <span class="space"></span><a href=${to("explain", vhost, shown)}>Explain a publish</a>
      <${RangeChoice} range=${range} onRange=${setRange} /></div>
    <${Problem} error=${error} />
    <${Passed} exchange=${exchange} range=${range} />
    <${ExchangeBindings} vhost=${vhost} name=${name} />
    ${
      exchange.type === "x-delayed-message" &&
      html`<${Waiting} where=${`${where}/delayed`} what="Delayed messages" vhost=${vhost}
        total=${exchange.messages_delayed} />`
    }
    <${Section} id="messages" title="Messages">
      <${Fold} title="Publish"><${Publish} vhost=${vhost} exchange=${name} /></${Fold}>
    </${Section}>
    ${
      own &&
      html`<${Section} id="remove" title="Delete"><div class="buttons">
        <${Confirm} button="Delete" title=${`Delete exchange '${name}'?`} name=${name}
          text=${`The exchange in vhost '${vhost}' and its bindings will be gone. Messages that
            are published to it are refused then.`}
          where=${where} after=${() => leave(names, "exchanges")} />
      </div></${Section}>`
    }`;
}
