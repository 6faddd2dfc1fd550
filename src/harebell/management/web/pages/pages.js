// All pages, in the order of the navigation, in its groups. `names` are the other first names of
// addresses that belong to a page; `tag` is what a user needs to see it. A page is loaded when it
// is opened.
import { lazy } from "../lib/lazy.js";

const Audit = lazy(() => import("./audit.js"), "Audit");
const Channel = lazy(() => import("./channels.js"), "Channel");
const Channels = lazy(() => import("./channels.js"), "Channels");
const Compose = lazy(() => import("./compose.js"), "Compose");
const Connection = lazy(() => import("./connection.js"), "Connection");
const Connections = lazy(() => import("./connections.js"), "Connections");
const DeadLetters = lazy(() => import("./dead-letters.js"), "DeadLetters");
const Definitions = lazy(() => import("./definitions.js"), "Definitions");
const Exchange = lazy(() => import("./exchange.js"), "Exchange");
const Exchanges = lazy(() => import("./exchanges.js"), "Exchanges");
const Explain = lazy(() => import("./explain.js"), "Explain");
const Limits = lazy(() => import("./limits.js"), "Limits");
const Logs = lazy(() => import("./logs.js"), "Logs");
const Overview = lazy(() => import("./overview.js"), "Overview");
const Pipelines = lazy(() => import("./pipelines.js"), "Pipelines");
const Policies = lazy(() => import("./policies.js"), "Policies");
const Queue = lazy(() => import("./queue.js"), "Queue");
const Queues = lazy(() => import("./queues.js"), "Queues");
const Sql = lazy(() => import("./sql.js"), "Sql");
const Streams = lazy(() => import("./streams.js"), "Streams");
const Topology = lazy(() => import("./topology.js"), "Topology");
const User = lazy(() => import("./user.js"), "User");
const Users = lazy(() => import("./users.js"), "Users");
const Vhosts = lazy(() => import("./vhosts.js"), "Vhosts");

// A list, or one of its rows when the address has so many names.
const either = (list, one, length) => (names) => (names.length === length ? one : list);

const BROKER = [{ name: "overview", label: "Overview", choose: () => Overview }];

const MESSAGES = [
  { name: "queues", label: "Queues", choose: either(Queues, Queue, 3) },
  { name: "exchanges", label: "Exchanges", choose: either(Exchanges, Exchange, 3) },
  { name: "streams", label: "Streams", choose: () => Streams },
  { name: "dead-letters", label: "Dead letters", choose: () => DeadLetters },
  { name: "topology", label: "Topology", choose: () => Topology },
];

const TOOLS = [
  { name: "publish", label: "Publish", choose: () => Compose },
  { name: "explain", label: "Explain", choose: () => Explain },
  { name: "sql", label: "SQL", choose: () => Sql },
];

const CLIENTS = [
  { name: "connections", label: "Connections", choose: either(Connections, Connection, 2) },
  { name: "channels", label: "Channels", choose: either(Channels, Channel, 2) },
  { name: "pipelines", label: "Pipelines", choose: () => Pipelines },
];

const ADMINISTRATION = [
  { name: "policies", label: "Policies", choose: () => Policies },
  { name: "vhosts", label: "Vhosts", choose: () => Vhosts },
  { name: "users", label: "Users", tag: "administrator", choose: either(Users, User, 2) },
  { name: "limits", label: "Limits", tag: "administrator", choose: () => Limits },
  { name: "definitions", label: "Definitions", tag: "administrator", choose: () => Definitions },
  { name: "audit", label: "Audit", tag: "administrator", choose: () => Audit },
  { name: "log", label: "Log", tag: "administrator", choose: () => Logs },
];

export const GROUPS = [
  { title: "Broker", pages: BROKER },
  { title: "Messages", pages: MESSAGES },
  { title: "Tools", pages: TOOLS },
  { title: "Clients", pages: CLIENTS },
  { title: "Administration", pages: ADMINISTRATION },
];

export const PAGES = GROUPS.flatMap(({ pages }) => pages);
