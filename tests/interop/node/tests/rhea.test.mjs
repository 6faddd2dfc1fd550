// rhea, and rhea-promise over it: AMQP 1.0 in node, as Azure's packages use it.

import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import rhea from "rhea";
import promise from "rhea-promise";
import { unique, until, url } from "../broker.mjs";

const { hostname: host, port, username, password } = new URL(url);
const options = { host, port: Number(port), username, password, reconnect: false };
const PATIENCE_MS = 60_000;

/** A connection that is closed after the test. */
function connect(t, more = {}) {
  const connection = rhea.create_container().connect({ ...options, ...more });
  t.after(() => connection.close());
  return connection;
}

/** The next event of a link or a connection. */
async function next(emitter, event) {
  const [context] = await once(emitter, event, { signal: AbortSignal.timeout(PATIENCE_MS) });
  return context;
}

/** Send messages, and return what became of each. */
async function send(connection, address, messages) {
  const sender = connection.open_sender(address);
  const outcomes = [];
  for (const outcome of ["accepted", "released", "rejected"]) {
    sender.on(outcome, () => outcomes.push(outcome));
  }
  await next(sender, "sendable");
  for (const message of messages) sender.send(message);
  await until(() => outcomes.length === messages.length, "outcomes");
  sender.close();
  return outcomes;
}

/** The next messages of a queue, which are accepted. */
async function receive(connection, source, count) {
  const receiver = connection.open_receiver({ source });
  const messages = [];
  receiver.on("message", ({ message }) => messages.push(message));
  await until(() => messages.length >= count, `${count} messages`);
  receiver.close();
  return messages;
}

test("rhea: properties and values of all kinds come back", async (t) => {
  const connection = connect(t);
  const queue = unique("rhea");
  const message = {
    durable: true,
    priority: 7,
    message_id: "m",
    correlation_id: rhea.generate_uuid(),
    subject: "s",
    content_type: "text/plain",
    group_id: "g",
    group_sequence: 3,
    creation_time: new Date(1370089815000),
    application_properties: { yes: true, number: -5, half: 0.5, text: "ü" },
    message_annotations: { "x-opt-kept": "a" },
    body: { list: [1, "two", { three: 3 }], none: null },
  };
  assert.deepEqual(await send(connection, queue, [message]), ["accepted"]);
  const [got] = await receive(connection, queue, 1);
  for (const [name, value] of Object.entries(message)) {
    if (name === "message_annotations") assert.equal(got[name]["x-opt-kept"], "a");
    else assert.deepEqual(got[name], value, name);
  }
});

test("rhea: bodies of many frames arrive whole, in both directions", async (t) => {
  const connection = connect(t, { max_frame_size: 1024 });
  const queue = unique("rhea");
  const body = "abcdefgh".repeat(50_000);
  await send(connection, queue, [{ body }]);
  const [got] = await receive(connection, queue, 1);
  assert.ok(got.body === body);
});

test("rhea: a request gets its reply on a dynamic source", async (t) => {
  const queue = unique("rhea");
  const server = connect(t);
  const answers = server.open_sender({ target: {} });
  server.open_receiver(queue).on("message", ({ message }) => {
    const { reply_to: to, message_id: id, body } = message;
    answers.send({ to, correlation_id: id, body: body.toUpperCase() });
  });
  const client = connect(t);
  const receiver = client.open_receiver({ source: { dynamic: true } });
  await next(receiver, "receiver_open");
  const answered = next(receiver, "message");
  await send(client, queue, [{ reply_to: receiver.source.address, message_id: 1, body: "hi" }]);
  const { message } = await answered;
  assert.deepEqual([message.correlation_id, message.body], [1, "HI"]);
});

test("rhea: a selector takes what it selects, and leaves the rest", async (t) => {
  const connection = connect(t);
  const queue = unique("rhea");
  const messages = [...Array(10).keys()].map((body) => (
    { body, application_properties: { colour: body % 2 ? "red" : "green" } }));
  await send(connection, queue, messages);
  const filter = rhea.filter.selector("colour = 'green'");
  const green = await receive(connection, { address: queue, filter }, 5);
  assert.deepEqual(green.map(({ body }) => body), [0, 2, 4, 6, 8]);
  const rest = await receive(connection, queue, 5);
  assert.deepEqual(rest.map(({ body }) => body), [1, 3, 5, 7, 9]);
});

test("rhea: a drain sends what is there, and says that this was all", async (t) => {
  const connection = connect(t);
  const queue = unique("rhea");
  await send(connection, queue, [{ body: 1 }, { body: 2 }]);
  const receiver = connection.open_receiver({ source: queue, credit_window: 0 });
  const got = [];
  receiver.on("message", ({ message }) => got.push(message.body));
  await next(receiver, "receiver_open");
  const drained = next(receiver, "receiver_drained");
  receiver.drain_credit();
  receiver.add_credit(50);
  await drained;
  assert.deepEqual(got, [1, 2]);
});

test("rhea: modified comes again with its failure counted, rejected does not", async (t) => {
  const connection = connect(t);
  const queue = unique("rhea");
  await send(connection, queue, [{ body: "x" }]);
  const receiver = connection.open_receiver({ source: queue, autoaccept: false });
  const first = await next(receiver, "message");
  assert.equal(first.message.delivery_count ?? 0, 0);
  const again = next(receiver, "message");
  first.delivery.modified({ delivery_failed: true, undeliverable_here: false });
  const second = await again;
  assert.equal(second.message.delivery_count, 1);
  second.delivery.reject({ condition: "app:bad", description: "cannot be read" });
  const drained = next(receiver, "receiver_drained");
  receiver.drain_credit();
  receiver.add_credit(1);
  await drained;
});

test("rhea: copy shows the messages, and takes none", async (t) => {
  const connection = connect(t);
  const queue = unique("rhea");
  await send(connection, queue, [{ body: 1 }, { body: 2 }]);
  for (const distribution_mode of ["copy", "move"]) {
    const got = await receive(connection, { address: queue, distribution_mode }, 2);
    assert.deepEqual(got.map(({ body }) => body), [1, 2]);
  }
});

test("rhea: a message for no queue is released", async (t) => {
  const exchange = `/exchange/amq.direct/${unique("none")}`;
  assert.deepEqual(await send(connect(t), exchange, [{ body: 1 }]), ["released"]);
});

test("rhea: a queue that does not exist refuses its link with a condition and a text", async (t) => {
  const receiver = connect(t).open_receiver("/queues/none");
  const { receiver: refused } = await next(receiver, "receiver_error");
  assert.equal(refused.error.condition, "amqp:not-found");
  assert.match(refused.error.description, /no queue 'none' in vhost '\/'/);
});

test("rhea: a wrong password is refused", async (t) => {
  const connection = rhea.create_container().connect({ ...options, password: "wrong" });
  connection.on("disconnected", () => {});
  const { connection: refused } = await next(connection, "connection_error");
  assert.equal(refused.get_error().description, "Failed to authenticate: 1");
});

test("rhea-promise: a sender waits for the outcome, and a receiver gets the message", async (t) => {
  const connection = new promise.Connection(options);
  await connection.open();
  t.after(() => connection.close());
  const queue = unique("rhea");
  const sender = await connection.createAwaitableSender({ target: { address: queue } });
  const delivery = await sender.send({ body: "a" });
  assert.ok(delivery.settled);
  await sender.close();
  const body = await new Promise((resolve, reject) => {
    connection.createReceiver({
      source: { address: queue },
      onMessage: ({ message }) => resolve(message.body),
      onError: reject,
    }).catch(reject);
  });
  assert.equal(body, "a");
});
