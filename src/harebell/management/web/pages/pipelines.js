// The queries of data programs that report to the broker, such as those of Spark.
import { path } from "../lib/api.js";
import { Confirm } from "../lib/confirm.js";
import { empty } from "../lib/empty.js";
import { NOTHING, count, dateTime, rate, seconds, short } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Badge, Listing } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { has, session } from "../lib/session.js";
import { useStore } from "../lib/store.js";
import { useTitle } from "../lib/title.js";
import { listed, vhost } from "../lib/vhosts.js";

const HEADS = [
  ...["Name", "Vhost", "User", "State", "Batch", "Rows/s", "Behind", "Lag"],
  ...["Queues", "Sink", "Last error"],
];

function State({ of }) {
  const shown = of.stale ? "stale" : of.state;
  const tone = of.state === "failed" || of.stale ? "bad" : "";
  const title = `reported ${dateTime(of.reported_at)}`;
  return html`<${Badge} tone=${tone} title=${title}>${shown}</${Badge}>`;
}

// A query that runs would report again.
function Forget({ of, refresh }) {
  const may = has("administrator") || session.get()?.name === of.user;
  if (!may || (of.state === "running" && !of.stale)) return "";
  return html`<${Confirm} button="Forget" tone="quiet"
    title=${`Forget query '${of.name}'?`}
    text="Its last report is deleted. The query, its checkpoint and its messages stay as they are."
    where=${`queries/${path(of.vhost, of.user, of.name)}`} after=${refresh} />`;
}

// What needs someone comes first; the others stay in the broker's order, by name.
function ordered(queries) {
  const fine = (each) => each.state !== "failed" && !each.stale;
  return [...queries].sort((a, b) => fine(a) - fine(b));
}

export function Pipelines() {
  useTitle("Pipelines");
  const chosen = useStore(vhost);
  const queries = usePoll(listed("queries", chosen));
  const shown = ordered(queries.data ?? []);
  return html`<div class="title"><h1>Pipelines</h1></div>
    <${Listing} id="pipelines" title="Queries that report" data=${queries.data}
      error=${queries.error} empty=${empty("pipelines")}
      heads=${HEADS} keys=${shown.map((each) => path(each.vhost, each.user, each.name))}
      rows=${shown.map((each) => [
        html`<div class="words">${each.name}</div>`,
        each.vhost,
        each.user,
        html`<${State} of=${each} /> <${Forget} of=${each} refresh=${queries.refresh} />`,
        count(each.batch),
        rate(each.rows_per_second),
        short(each.lag_messages),
        seconds(each.lag_seconds),
        html`<div class="words">${each.sources.join(", ") || NOTHING}</div>`,
        html`<div class="words">${each.sink ?? NOTHING}</div>`,
        html`<div class="words">${each.error ?? NOTHING}</div>`,
      ])} />`;
}
