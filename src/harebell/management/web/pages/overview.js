// The broker as a whole: figures, charts, and what is short.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, path } from "../lib/api.js";
import { Chart } from "../lib/chart.js";
import { Verdict } from "../lib/findings.js";
import { bytes, count, perSecond, seconds, short } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Awaited, Badge, Problem, Rows, Section, Tiles } from "../lib/pieces.js";
import { Marks, useMarks } from "../lib/marks.js";
import { usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import { RANGES, sampled, useLevels, useRates, windowOf } from "../lib/samples.js";
import { has } from "../lib/session.js";
import { useTitle } from "../lib/title.js";

export function RangeChoice({ range, onRange }) {
  return html`<label class="choice">Range
    <select value=${range.age} onChange=${(event) =>
      onRange(RANGES.find(({ age }) => age === Number(event.currentTarget.value)))}>
      ${RANGES.map(({ label, age }) => html`<option key=${age} value=${age}>${label}</option>`)}
    </select></label>`;
}

// The values that were seen since the page was opened, for what the API has no samples of.
export function useHistory(value, at) {
  const points = useRef([]);
  const [seen, setSeen] = useState([]);
  useEffect(() => {
    if (value === undefined || value === null) return;
    points.current = [...points.current, [at ?? Date.now() / 1000, value]].slice(-720);
    setSeen(points.current);
  }, [value, at]);
  return seen;
}

function MessageCharts({ overview, shown }) {
  const stats = overview.message_stats ?? {};
  const totals = overview.queue_totals ?? {};
  const passed = useRates(overview, {
    published: stats.publish_details,
    delivered: stats.deliver_get_details,
    acked: stats.ack_details,
    confirmed: stats.confirm_details,
  });
  const queued = useLevels(overview, {
    ready: totals.messages_ready_details,
    unacknowledged: totals.messages_unacknowledged_details,
  });
  return html`<${Chart} title="Messages per second" series=${passed} window=${shown}
      format=${perSecond} />
    <${Chart} title="Messages in queues" series=${queued} window=${shown} />`;
}

function OldestChart({ shown }) {
  const [polled, setPolled] = useState(0);
  const { data, error } = usePoll("oldest-message", {
    load: async (where, signal) => {
      const found = await get(where, signal);
      setPolled(Date.now() / 1000);
      return found;
    },
  });
  const seen = useHistory(data ? (data.oldest_seconds ?? 0) : null, polled);
  const series = useMemo(() => [{ label: "oldest", points: seen }], [seen]);
  const name = data?.queue ?? null;
  return html`<${Chart} title="Age of the oldest ready message" series=${series} window=${shown}
    format=${seconds}>
    <${Problem} error=${error} />
    ${
      name !== null &&
      html`<p class="hint">in <a href=${to("queues", data.vhost, name)}>${name}</a></p>`
    }
  </${Chart}>`;
}

const limitOf = (label, value) => (value ? [{ label, value }] : []);

function NodeCharts({ name, range, shown }) {
  const { data: node, error } = usePoll(`nodes/${path(name)}?${sampled(range, "node_stats")}`);
  const memory = useLevels(node, { used: node?.mem_used_details });
  const disk = useLevels(node, { free: node?.disk_free_details });
  const polled = useMemo(() => Date.now() / 1000, [node]);
  const sync = useHistory(node ? node.io_sync_avg_time / 1000 : null, polled);
  const syncs = useMemo(() => [{ label: "mean", points: sync }], [sync]);
  if (!node) return html`<${Problem} error=${error} />`;
  return html`<${Problem} error=${error} />
    <${Chart} title="Memory" series=${memory} window=${shown} format=${bytes}
      limits=${limitOf("watermark", node.mem_limit)} />
    <${Chart} title="Disk" series=${disk} window=${shown} format=${bytes}
      limits=${limitOf("limit", node.disk_free_limit)} />
    <${Chart} title="Latency of a sync" series=${syncs} window=${shown} format=${seconds} />
    <div class="chart facts"><h3>Process</h3>
      <dl class="members">
        <div><dt>Up for</dt><dd>${seconds(node.uptime / 1000)}</dd></div>
        <div><dt>Memory used</dt><dd>${bytes(node.mem_used)}, messages
          ${" "}${bytes(node.mem_messages)}</dd></div>
        <div><dt>Memory watermark</dt><dd>${bytes(node.mem_limit)}
          ${node.mem_alarm && html` <${Badge} tone="bad">reached</${Badge}>`}</dd></div>
        <div><dt>Disk limit</dt><dd>${bytes(node.disk_free_limit)}
          ${node.disk_free_alarm && html` <${Badge} tone="bad">reached</${Badge}>`}</dd></div>
        <div><dt>Files open</dt><dd>${count(node.fd_used)} of ${count(node.fd_total)}</dd></div>
        <div><dt>Data directory</dt><dd>${node.db_dir}</dd></div>
      </dl></div>`;
}

export function Overview() {
  useTitle("Overview");
  useMarks();
  const [range, setRange] = useState(RANGES[1]);
  const { data, error } = usePoll(`overview?${sampled(range, "msg_rates", "lengths")}`);
  if (!data) return html`<h1>Overview</h1><${Awaited} error=${error} />`;
  const totals = data.queue_totals ?? {};
  const objects = data.object_totals ?? {};
  const stats = data.message_stats ?? {};
  const shown = windowOf(range, totals.messages_details, totals.messages_ready_details);
  return html`<div class="title"><h1>Overview</h1>
      <span class="hint">${data.cluster_name} · ${data.product_name} ${data.product_version}</span>
      <span class="space"></span><${RangeChoice} range=${range} onRange=${setRange} /></div>
    <${Problem} error=${error} />
    <${Verdict} shown=${!data.disable_stats} />
    <${Tiles} of=${[
      ["Published", perSecond(stats.publish_details?.rate)],
      ["Delivered", perSecond(stats.deliver_get_details?.rate)],
      ["Ready", short(totals.messages_ready)],
      ["Unacked", short(totals.messages_unacknowledged)],
      ["Queues", count(objects.queues)],
      ["Consumers", count(objects.consumers)],
      ["Connections", count(objects.connections)],
      ["Channels", count(objects.channels)],
    ]} />
    <div class="charts">
      <${MessageCharts} overview=${data} shown=${shown} />
      <${OldestChart} shown=${shown} />
      ${has("monitoring") && data.node && html`<${NodeCharts} name=${data.node} range=${range}
        shown=${shown} />`}
    </div>
    <${Marks} window=${shown} />
    <${Section} id="listeners" title="Listens on">
      <${Rows} label="Listeners" heads=${["Protocol", "Address", "Port"]}
        rows=${(data.listeners ?? []).map((each) => [
          each.protocol,
          each.ip_address,
          String(each.port),
        ])} />
    </${Section}>`;
}
