// All pages, in the order of the navigation. `names` are the other first names of addresses that
// belong to a page; `tag` is what a user needs to see it.
import { Channel, Channels } from "./channels.js";
import { Compose } from "./compose.js";
import { Connection } from "./connection.js";
import { Connections } from "./connections.js";
import { Definitions } from "./definitions.js";
import { Exchange } from "./exchange.js";
import { Exchanges } from "./exchanges.js";
import { Explain } from "./explain.js";
import { Limits } from "./limits.js";
import { Logs } from "./logs.js";
import { Overview } from "./overview.js";
import { Pipelines } from "./pipelines.js";
import { Policies } from "./policies.js";
import { Queue } from "./queue.js";
import { Queues } from "./queues.js";
import { Streams } from "./streams.js";
import { Topology } from "./topology.js";
import { User } from "./user.js";
import { Users } from "./users.js";
import { Vhosts } from "./vhosts.js";

// A list, or one of its rows when the address has so many names.
const either = (list, one, length) => (names) => (names.length === length ? one : list);

export const PAGES = [
  { name: "overview", label: "Overview", choose: () => Overview },
  { name: "queues", label: "Queues", choose: either(Queues, Queue, 3) },
  { name: "exchanges", label: "Exchanges", choose: either(Exchanges, Exchange, 3) },
  { name: "topology", label: "Topology", choose: () => Topology },
  { name: "streams", label: "Streams", choose: () => Streams },
  { name: "pipelines", label: "Pipelines", choose: () => Pipelines },
  { name: "publish", label: "Publish", choose: () => Compose },
  { name: "explain", label: "Explain", choose: () => Explain },
  { name: "connections", label: "Connections", choose: either(Connections, Connection, 2) },
  { name: "channels", label: "Channels", choose: either(Channels, Channel, 2) },
  { name: "policies", label: "Policies", choose: () => Policies },
  { name: "vhosts", label: "Vhosts", choose: () => Vhosts },
  { name: "users", label: "Users", tag: "administrator", choose: either(Users, User, 2) },
  { name: "limits", label: "Limits", tag: "administrator", choose: () => Limits },
  { name: "definitions", label: "Definitions", tag: "administrator", choose: () => Definitions },
  { name: "log", label: "Log", tag: "administrator", choose: () => Logs },
];
