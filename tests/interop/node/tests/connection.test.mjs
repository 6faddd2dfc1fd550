// amqplib's connection and confirm channel: confirms, errors, back-pressure, and clean ends.

import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import amqp from "amqplib";
import callbackApi from "amqplib/callback_api";
import {
  beatSeconds, channelError, connect, idleSeconds, ownUrl, setWatermark, unique, until, url,
} from "../broker.mjs";

const octets = (text) => Buffer.from(text);

test("a confirm channel confirms every publish in the queue", async (t) => {
  const ch = await (await connect(t)).createConfirmChannel();
  const { queue } = await ch.assertQueue("", { exclusive: true });
  const confirmed = [];
  for (let i = 0; i < 200; i++) {
    ch.sendToQueue(queue, octets(String(i)), {}, (error) => confirmed.push([i, error]));
  }
  await ch.waitForConfirms();
  assert.deepEqual(confirmed, Array.from({ length: 200 }, (_, i) => [i, null]));
  assert.equal((await ch.checkQueue(queue)).messageCount, 200);
});

test("an unroutable mandatory publish is returned before it is confirmed", async (t) => {
  const ch = await (await connect(t)).createConfirmChannel();
  const events = [];
  ch.on("return", (message) => events.push(`returned ${message.content}`));
  ch.publish("", "nobody", octets("x"), { mandatory: true }, () => events.push("confirmed"));
  await ch.waitForConfirms();
  assert.deepEqual(events, ["returned x", "confirmed"]);
});

test("asserting an exchange of another type closes the channel with 406", async (t) => {
  const connection = await connect(t);
  const exchange = unique("mismatch");
  const ch = await connection.createChannel();
  await ch.assertExchange(exchange, "direct", { durable: true });
  const error = await channelError(connection, (failing) =>
    failing.assertExchange(exchange, "fanout", { durable: true }));
  assert.equal(error.code, 406);
  assert.ok(error.message.includes(
    `PRECONDITION_FAILED - inequivalent arg 'type' for exchange '${exchange}' in vhost '/': ` +
    "received 'fanout' but current is 'direct'"), error.message);
  await ch.deleteExchange(exchange);
});

test("asserting a queue with other arguments closes the channel with 406", async (t) => {
  const connection = await connect(t);
  const queue = unique("mismatch");
  const ch = await connection.createChannel();
  await ch.assertQueue(queue, { durable: false, maxLength: 5 });
  const error = await channelError(connection, (failing) =>
    failing.assertQueue(queue, { durable: false, maxLength: 6 }));
  assert.equal(error.code, 406);
  assert.ok(error.message.includes("received '6' but current is '5'"), error.message);
  await ch.deleteQueue(queue);
});

test("checking what does not exist closes the channel with 404", async (t) => {
  const connection = await connect(t);
  const missing = unique("missing");
  const noQueue = await channelError(connection, (failing) => failing.checkQueue(missing));
  const noExchange = await channelError(connection, (failing) => failing.checkExchange(missing));
  assert.deepEqual([noQueue.code, noExchange.code], [404, 404]);
  assert.ok(noQueue.message.includes(`NOT_FOUND - no queue '${missing}' in vhost '/'`));
  assert.ok(noExchange.message.includes(`NOT_FOUND - no exchange '${missing}' in vhost '/'`));
});

test("an exclusive queue is locked for other connections with 405", async (t) => {
  const [mine, other] = [await connect(t), await connect(t)];
  const { queue } = await (await mine.createChannel()).assertQueue("", { exclusive: true });
  const error = await channelError(other, (failing) => failing.checkQueue(queue));
  assert.equal(error.code, 405);
});

test("an acknowledgement of an unknown tag closes the channel with 406", async (t) => {
  const error = await channelError(await connect(t), (failing) =>
    failing.ack({ fields: { deliveryTag: 12 } }));
  assert.equal(error.code, 406);
  assert.ok(error.message.includes("PRECONDITION_FAILED - unknown delivery tag 12"), error.message);
});

test("a wrong password and an unknown vhost are told", async () => {
  const wrong = url.replace("guest:guest", "guest:nope");
  await assert.rejects(amqp.connect(wrong), /403 \(ACCESS-REFUSED\)/);
  // amqplib says only that it was not the open-ok it had waited for.
  await assert.rejects(amqp.connect(`${url}/nowhere`), /got <ConnectionClose channel:0>/);
});

test("a publisher hears blocked and unblocked", async (t) => {
  const [publisher, consumer] = [await connect(t, ownUrl), await connect(t, ownUrl)];
  const heard = [];
  publisher.on("blocked", (reason) => heard.push(reason));
  publisher.on("unblocked", () => heard.push("unblocked"));
  const [sending, taking] = [await publisher.createChannel(), await consumer.createChannel()];
  const { queue } = await taking.assertQueue("", { exclusive: true });
  setWatermark("0");
  sending.sendToQueue(queue, octets("one more"));
  await until(() => heard.length === 1, "blocked");
  assert.equal((await taking.purgeQueue(queue)).messageCount, 0);
  setWatermark("0.9");
  await until(() => heard.length === 2, "unblocked");
  assert.deepEqual(heard, ["low on memory", "unblocked"]);
});

test("closing a connection ends its socket without a reset", async () => {
  for (let i = 0; i < 20; i++) {
    const connection = await amqp.connect(url);
    const errors = [];
    const socket = connection.connection.stream;
    socket.on("error", (error) => errors.push(error));
    connection.on("error", (error) => errors.push(error));
    const ended = once(socket, "close");
    const ch = await connection.createChannel();
    const { queue } = await ch.assertQueue("", { exclusive: true });
    ch.sendToQueue(queue, Buffer.alloc(300_000));
    await connection.close();
    const [hadError] = await ended;
    assert.deepEqual([hadError, errors], [false, []]);
  }
});

test("heartbeats keep an idle connection open", async (t) => {
  const connection = await connect(t, `${url}?heartbeat=${beatSeconds}`);
  await sleep(idleSeconds * 1000);
  const ch = await connection.createChannel();
  assert.match((await ch.assertQueue("", { exclusive: true })).queue, /^amq\.gen-/);
});

test("many channels of a connection work side by side", async (t) => {
  const connection = await connect(t);
  const channels = await Promise.all(Array.from({ length: 50 }, () => connection.createChannel()));
  const queues = await Promise.all(channels.map((ch) => ch.assertQueue("", { exclusive: true })));
  channels.forEach((ch, i) => { ch.sendToQueue(queues[i].queue, octets(String(i))); });
  const got = await Promise.all(channels.map((ch, i) => ch.get(queues[i].queue)));
  const bodies = got.map((message) => message.content.toString());
  assert.deepEqual(bodies, channels.map((_, i) => String(i)));
});

test("the callback interface publishes and consumes", (t, done) => {
  callbackApi.connect(url, (failure, connection) => {
    assert.ifError(failure);
    t.after(() => connection.close());
    connection.createChannel((refused, ch) => {
      assert.ifError(refused);
      ch.assertQueue("", { exclusive: true }, (wrong, { queue }) => {
        assert.ifError(wrong);
        ch.consume(queue, (message) => {
          ch.ack(message);
          assert.equal(message.content.toString(), "called back");
          done();
        });
        ch.sendToQueue(queue, octets("called back"));
      });
    });
  });
});

test("a request gets its reply over a queue of its own", async (t) => {
  const [server, client] = [await connect(t), await connect(t)];
  const [serving, asking] = [await server.createChannel(), await client.createChannel()];
  const work = (await serving.assertQueue(unique("work"), { exclusive: true })).queue;
  await serving.consume(work, (message) => {
    const { replyTo, correlationId } = message.properties;
    serving.sendToQueue(replyTo, octets(`${message.content}!`), { correlationId });
    serving.ack(message);
  });
  const replies = (await asking.assertQueue("", { exclusive: true })).queue;
  const got = new Map();
  await asking.consume(replies, ({ properties, content }) =>
    got.set(properties.correlationId, content.toString()), { noAck: true });
  for (const id of ["1", "2", "3"]) {
    asking.sendToQueue(work, octets(`hello ${id}`), { correlationId: id, replyTo: replies });
  }
  await until(() => got.size === 3, "three replies");
  assert.deepEqual([...got], [["1", "hello 1!"], ["2", "hello 2!"], ["3", "hello 3!"]]);
});
