// amqplib's channel: publishing, consuming, settling, and exchanges of every kind.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { channel, connect, unique, until } from "../broker.mjs";

const exclusive = { exclusive: true };
const text = (message) => message && message.content.toString();

async function filled(ch, count) {
  const { queue } = await ch.assertQueue("", exclusive);
  for (let i = 0; i < count; i++) ch.sendToQueue(queue, Buffer.from(String(i)));
  return queue;
}

test("a message comes back with its properties, headers and body", async (t) => {
  const ch = await channel(t);
  const { queue } = await ch.assertQueue("", exclusive);
  const options = {
    contentType: "application/json",
    contentEncoding: "utf-8",
    headers: { bool: true, int: 7, large: 2 ** 40, double: 1.5, text: "ü", none: null,
      list: [1, "two", { three: 3 }], table: { deep: { deeper: "x" } } },
    deliveryMode: 2,
    priority: 5,
    correlationId: "c",
    replyTo: "r",
    expiration: "60000",
    messageId: "m",
    timestamp: 1370089815,
    type: "t",
    userId: "guest",
    appId: "a",
  };
  ch.sendToQueue(queue, Buffer.from('{"a":1}'), options);
  const got = await ch.get(queue, { noAck: true });
  const { clusterId, ...properties } = got.properties;
  assert.deepEqual(properties, options);
  assert.equal(clusterId, undefined);
  assert.equal(text(got), '{"a":1}');
  assert.deepEqual(
    { exchange: got.fields.exchange, key: got.fields.routingKey, again: got.fields.redelivered },
    { exchange: "", key: queue, again: false },
  );
  assert.equal(await ch.get(queue), false);
});

test("bodies around the frame size and of 5 MB arrive whole", async (t) => {
  const ch = await channel(t);
  const { queue } = await ch.assertQueue("", exclusive);
  const frame = 131072 - 8;
  const sizes = [0, 1, 4088, 4089, frame - 1, frame, frame + 1, 5_000_000];
  const bodies = sizes.map((size) => randomBytes(size));
  for (const body of bodies) ch.sendToQueue(queue, body);
  for (const body of bodies) {
    const got = await ch.get(queue, { noAck: true });
    assert.ok(got.content.equals(body), `${body.length} octets`);
  }
});

test("a consumer gets messages in order and prefetch holds the rest back", async (t) => {
  const ch = await channel(t);
  const queue = await filled(ch, 10);
  await ch.prefetch(3);
  const got = [];
  const { consumerTag } = await ch.consume(queue, (message) => got.push(message));
  await ch.checkQueue(queue);
  assert.deepEqual(got.map(text), ["0", "1", "2"]);
  ch.ack(got[2], true);
  await until(() => got.length === 6, "three more after an ack of all");
  for (const message of got.slice(3)) ch.ack(message);
  await until(() => got.length === 9, "three more after three acks");
  await ch.cancel(consumerTag);
  ch.ackAll();
  assert.deepEqual(got.map(text), ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
  assert.deepEqual(got.map((message) => message.fields.deliveryTag), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal((await ch.checkQueue(queue)).messageCount, 1);
});

test("nack and reject put back or drop", async (t) => {
  const ch = await channel(t);
  const queue = await filled(ch, 3);
  const [first, second, third] = [await ch.get(queue), await ch.get(queue), await ch.get(queue)];
  ch.reject(second, false);
  ch.nack(third, false, true);
  ch.nack(first, false, true);
  const again = [await ch.get(queue), await ch.get(queue)];
  assert.deepEqual(again.map(text), ["0", "2"]);
  assert.deepEqual(again.map((message) => message.fields.redelivered), [true, true]);
  ch.nackAll(false);
  assert.equal(await ch.get(queue), false);
});

test("recover redelivers what is outstanding", async (t) => {
  const ch = await channel(t);
  const queue = await filled(ch, 2);
  const got = [];
  await ch.consume(queue, (message) => got.push(message));
  await until(() => got.length === 2, "both");
  await ch.recover();
  await until(() => got.length === 4, "both again");
  assert.deepEqual(got.map(text), ["0", "1", "0", "1"]);
  assert.deepEqual(got.map((m) => m.fields.redelivered), [false, false, true, true]);
});

test("direct, topic and fanout exchanges route", async (t) => {
  const ch = await channel(t);
  const routed = { direct: "a.b", topic: "a.*", fanout: "other" };
  for (const [kind, pattern] of Object.entries(routed)) {
    const { exchange } = await ch.assertExchange(unique(kind), kind, { autoDelete: true });
    const { queue } = await ch.assertQueue("", exclusive);
    await ch.bindQueue(queue, exchange, pattern);
    ch.publish(exchange, "a.b", Buffer.from(kind));
    ch.publish(exchange, "b.a", Buffer.from("not for direct or topic"));
    assert.equal(text(await ch.get(queue, { noAck: true })), kind);
    assert.equal((await ch.checkQueue(queue)).messageCount, kind === "fanout" ? 1 : 0);
    await ch.unbindQueue(queue, exchange, pattern);
  }
});

test("a headers exchange compares headers", async (t) => {
  const ch = await channel(t);
  const exchange = unique("headers");
  await ch.assertExchange(exchange, "headers");
  const all = (await ch.assertQueue("", exclusive)).queue;
  const any = (await ch.assertQueue("", exclusive)).queue;
  const wanted = { format: "pdf", pages: 3, signed: true };
  await ch.bindQueue(all, exchange, "", { "x-match": "all", ...wanted });
  await ch.bindQueue(any, exchange, "", { "x-match": "any", ...wanted });
  ch.publish(exchange, "", Buffer.from("both"), { headers: { ...wanted, extra: 1 } });
  ch.publish(exchange, "", Buffer.from("any"), { headers: { format: "zip", pages: 3 } });
  ch.publish(exchange, "", Buffer.from("none"), { headers: { format: "zip", pages: "3" } });
  ch.publish(exchange, "", Buffer.from("nothing"));
  assert.equal((await ch.checkQueue(all)).messageCount, 1);
  assert.equal((await ch.checkQueue(any)).messageCount, 2);
  assert.equal(text(await ch.get(all)), "both");
  await ch.deleteExchange(exchange);
});

test("an alternate exchange takes what matches nothing", async (t) => {
  const ch = await channel(t);
  const [main, spare] = [unique("main"), unique("spare")];
  await ch.assertExchange(spare, "fanout");
  await ch.assertExchange(main, "direct", { alternateExchange: spare });
  const { queue } = await ch.assertQueue("", exclusive);
  await ch.bindQueue(queue, spare, "");
  const returned = [];
  ch.on("return", (message) => returned.push(message));
  ch.publish(main, "unknown", Buffer.from("spared"), { mandatory: true });
  const got = await ch.get(queue);
  assert.equal(text(got), "spared");
  assert.equal(got.fields.exchange, main);
  assert.deepEqual(returned, []);
  await ch.deleteExchange(main);
  await ch.deleteExchange(spare);
});

test("exchanges bound to exchanges pass messages on", async (t) => {
  const ch = await channel(t);
  const [source, target] = [unique("source"), unique("target")];
  await ch.assertExchange(source, "topic");
  await ch.assertExchange(target, "fanout", { internal: true });
  await ch.bindExchange(target, source, "a.#");
  const { queue } = await ch.assertQueue("", exclusive);
  await ch.bindQueue(queue, target, "");
  ch.publish(source, "a.b.c", Buffer.from("passed"));
  await ch.unbindExchange(target, source, "a.#");
  ch.publish(source, "a.b.c", Buffer.from("stopped"));
  assert.equal((await ch.checkQueue(queue)).messageCount, 1);
  await ch.deleteExchange(source);
  await ch.deleteExchange(target);
});

test("an unroutable mandatory message is returned", async (t) => {
  const ch = await channel(t);
  const returned = [];
  ch.on("return", (message) => returned.push(message));
  ch.publish("amq.direct", "nobody", Buffer.from("back"), { mandatory: true, messageId: "m-1" });
  await until(() => returned.length === 1, "the return");
  const [{ fields, properties, content }] = returned;
  assert.deepEqual(
    [fields.replyCode, fields.replyText, fields.exchange, fields.routingKey],
    [312, "NO_ROUTE", "amq.direct", "nobody"],
  );
  assert.deepEqual([properties.messageId, content.toString()], ["m-1", "back"]);
});

test("queues are counted, purged and deleted", async (t) => {
  const ch = await channel(t);
  const queue = unique("counted");
  const declared = await ch.assertQueue(queue, { durable: true });
  assert.deepEqual(declared, { queue, messageCount: 0, consumerCount: 0 });
  for (let i = 0; i < 4; i++) ch.sendToQueue(queue, Buffer.from("x"), { persistent: true });
  assert.equal((await ch.checkQueue(queue)).messageCount, 4);
  assert.deepEqual(await ch.purgeQueue(queue), { messageCount: 4 });
  assert.deepEqual(await ch.deleteQueue(queue), { messageCount: 0 });
});

test("a consumer hears null when its queue is deleted", async (t) => {
  const connection = await connect(t);
  const ch = await connection.createChannel();
  const queue = unique("doomed");
  await ch.assertQueue(queue);
  const heard = [];
  await ch.consume(queue, (message) => heard.push(message));
  await (await connection.createChannel()).deleteQueue(queue);
  await until(() => heard.length === 1, "the cancellation");
  assert.deepEqual(heard, [null]);
});

test("closing a channel puts back what it held", async (t) => {
  const connection = await connect(t);
  const [one, two] = [await connection.createChannel(), await connection.createChannel()];
  const queue = await filled(one, 1);
  await one.get(queue);
  await one.close();
  const again = await two.get(queue);
  assert.deepEqual([text(again), again.fields.redelivered], ["0", true]);
});
