// All streams, and how far each of their consumers has read.
import { path } from "../lib/api.js";
import { empty } from "../lib/empty.js";
import { bytes, count, rate, short, value } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Listing, Problem, Rows, Section } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import { useStore } from "../lib/store.js";
import { useTitle } from "../lib/title.js";
import { listed, vhost } from "../lib/vhosts.js";

const FIELDS =
  "name,vhost,type,messages,message_bytes,consumers,arguments," +
  "message_stats.publish_details.rate";

function Consumers({ of }) {
  return html`<${Listing} id="readers" title="Consumers of streams" empty="No stream has consumers."
      heads=${["Stream", "Tag", "Began at", "Next offset", "Behind", "Unacked", "Channel"]}
      rows=${of.map((each) => [
        html`<a href=${to("queues", each.queue.vhost, each.queue.name)}>${each.queue.name}</a>`,
        each.consumer_tag,
        value(each.arguments?.["x-stream-offset"] ?? "next"),
        count(each.offset),
        count(each.offset_lag),
        count(each.messages_unacknowledged),
        html`<a href=${to("channels", each.channel_details.name)}>${each.channel_details.name}</a>`,
      ])} />`;
}

export function Streams() {
  useTitle("Streams");
  const chosen = useStore(vhost);
  const queues = usePoll(`${listed("queues", chosen)}?columns=${path(FIELDS)}`);
  const readers = usePoll(listed("consumers", chosen));
  const streams = (queues.data ?? []).filter(({ type }) => type === "stream");
  const reading = (readers.data ?? []).filter(({ offset }) => typeof offset === "number");
  return html`<div class="title"><h1>Streams</h1></div>
    <${Problem} error=${queues.error ?? readers.error} />
    <${Section} id="streams" title="Streams">
      ${
        queues.data &&
        html`<${Rows} label="Streams" empty=${empty("streams")}
          heads=${["Name", "Vhost", "Messages", "Size", "In/s", "Retention", "Consumers"]}
          rows=${streams.map((each) => [
            html`<a href=${to("queues", each.vhost, each.name)}>${each.name}</a>`,
            each.vhost,
            short(each.messages),
            bytes(each.message_bytes),
            rate(each.message_stats?.publish_details?.rate),
            retention(each.arguments),
            count(each.consumers),
          ])} />`
      }
    </${Section}>
    ${readers.data && html`<${Consumers} of=${reading} />`}`;
}

function retention(given) {
  const most = given?.["x-max-length-bytes"];
  const age = given?.["x-max-age"];
  return [most === undefined ? null : bytes(most), age].filter(Boolean).join(", ") || "all";
}
