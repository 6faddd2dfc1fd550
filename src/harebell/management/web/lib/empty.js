// What an empty list is for, and the command that fills it.
import { html } from "./html.js";
import { Empty } from "./pieces.js";

const LISTS = {
  queues: [
    "There is no queue yet.",
    "A queue keeps messages until a consumer has acknowledged them.",
    "harebell queues declare orders",
  ],
  streams: [
    "There is no stream.",
    "A stream keeps its messages after they were read: each consumer begins where it wants to.",
    "harebell queues declare events --type stream",
  ],
  "dead-letters": [
    "No dead letters.",
    "A queue with a dead-letter exchange publishes messages there that it cannot deliver.",
    `harebell policies set dlx '^orders' '{"dead-letter-exchange": "dead"}'`,
  ],
  pipelines: [
    "No query reports to this broker.",
    "A data program, such as a query of Spark, can say after each batch how far it is.",
    "harebell pipeline run sales.yaml",
  ],
  connections: [
    "No client is connected.",
    "A client connects to one of the addresses that the overview lists, with a user and a vhost.",
    "harebell publish -r orders hello",
  ],
  channels: [
    "No channel is open.",
    "A client publishes and consumes on channels; AMQP 0-10 and 1.0 call them sessions.",
    "harebell consume -q orders",
  ],
  policies: [
    "There is no policy.",
    "A policy gives settings to all queues and exchanges whose names match a pattern.",
    `harebell policies set short '^orders' '{"max-length": 1000}'`,
  ],
  "vhost-limits": [
    "No vhost has a limit.",
    "A limit bounds how many connections and queues a vhost may have; who is in already stays.",
    "harebell limits set --vhost / --max-queues 1000",
  ],
  "user-limits": [
    "No user has a limit.",
    "A limit bounds how many connections and channels a user may have; who is in already stays.",
    "harebell limits set --user guest --max-connections 100",
  ],
  "operator-policies": [
    "There is no operator policy.",
    "An operator policy bounds what applications may ask for, whatever their policies say.",
    `harebell operator-policies set bound '.*' '{"max-length": 100000}'`,
  ],
};

// Of the list of that name.
export function empty(list) {
  const [title, text, command] = LISTS[list];
  return html`<${Empty} title=${title} command=${command}>${text}</${Empty}>`;
}
