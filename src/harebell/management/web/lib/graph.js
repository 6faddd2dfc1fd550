// The topology of a vhost as a graph, and a place for each node: sources left, queues right.

const DEFAULT = "";

export const idOf = (kind, name) => `${kind}\n${name}`;

// {nodes: Map(id, {id, kind, name, type}), edges: [{from, to, label, kind}]}
export function graphOf(exchanges, queues, bindings, policies = []) {
  const alternates = new Map(
    policies.map(({ name, definition }) => [name, definition["alternate-exchange"]]),
  );
  const nodes = new Map();
  const edges = [];
  const add = (kind, { name, type, message_stats: stats }) => {
    const rate = (stats?.publish_in_details ?? stats?.publish_details)?.rate;
    nodes.set(idOf(kind, name), { id: idOf(kind, name), kind, name, type, rate });
  };
  exchanges.filter(({ name }) => name !== DEFAULT).forEach((each) => add("exchange", each));
  queues.forEach((each) => add("queue", each));
  const connect = (from, to, label, kind) => {
    if (nodes.has(from) && nodes.has(to)) edges.push({ from, to, label, kind });
  };
  for (const { source, destination, destination_type: kind, routing_key: key } of bindings) {
    if (source === DEFAULT) continue;
    // A list has its first rows alone: what a binding names is there.
    for (const [what, name] of [["exchange", source], [kind, destination]]) {
      if (!nodes.has(idOf(what, name))) add(what, { name, type: "" });
    }
    connect(idOf("exchange", source), idOf(kind, destination), key, "binding");
  }
  for (const { name, arguments: given, effective_policy_definition: policy } of queues) {
    const dead = given?.["x-dead-letter-exchange"] ?? policy?.["dead-letter-exchange"];
    const key = given?.["x-dead-letter-routing-key"] ?? policy?.["dead-letter-routing-key"];
    if (dead === DEFAULT && key) {
      connect(idOf("queue", name), idOf("queue", key), key, "dead-letter");
    } else if (dead) {
      connect(idOf("queue", name), idOf("exchange", dead), key ?? "", "dead-letter");
    }
  }
  for (const { name, arguments: given, policy } of exchanges) {
    const other = given?.["alternate-exchange"] ?? alternates.get(policy);
    if (other) connect(idOf("exchange", name), idOf("exchange", other), "", "alternate");
  }
  return { nodes, edges };
}

// Edges of one kind between the same two nodes as one, with the keys of all.
export function bundled(edges) {
  const bundles = new Map();
  for (const { from, to, label, kind } of edges) {
    const id = [kind, from, to].join("\n\n");
    if (!bundles.has(id)) bundles.set(id, { from, to, kind, keys: [] });
    bundles.get(id).keys.push(label);
  }
  for (const { keys } of bundles.values()) keys.sort();
  return [...bundles.values()];
}

// The nodes that are so many steps from one node, in both directions.
export function around({ nodes, edges }, centre, steps) {
  let reached = new Set(nodes.has(centre) ? [centre] : []);
  for (let step = 0; step < steps; step += 1) {
    const next = new Set(reached);
    for (const { from, to } of edges) {
      if (reached.has(from)) next.add(to);
      if (reached.has(to)) next.add(from);
    }
    reached = next;
  }
  return reached;
}

// Only some of the nodes, and the edges between them.
export function only({ nodes, edges }, ids) {
  return {
    nodes: new Map([...nodes].filter(([id]) => ids.has(id))),
    edges: edges.filter(({ from, to }) => ids.has(from) && ids.has(to)),
  };
}

// The column of each node: one more than that of what leads to it. Edges of a cycle lead back.
export function columnsOf({ nodes, edges }) {
  const leads = new Map([...nodes.keys()].map((id) => [id, []]));
  const entered = new Set();
  for (const { from, to } of edges) {
    leads.get(from).push(to);
    entered.add(to);
  }
  const column = new Map();
  const open = new Set();
  const visit = (id, at) => {
    if (open.has(id) || at > nodes.size || (column.get(id) ?? -1) >= at) return;
    column.set(id, at);
    open.add(id);
    leads.get(id).forEach((next) => visit(next, at + 1));
    open.delete(id);
  };
  for (const id of nodes.keys()) if (!entered.has(id)) visit(id, 0);
  for (const id of nodes.keys()) if (!column.has(id)) visit(id, 0);
  return column;
}
