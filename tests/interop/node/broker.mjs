// What the tests of node clients share: where the broker is, and connections that end with their test.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import amqp from "amqplib";

function variable(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: these tests are run by test_node_clients.py`);
  return value;
}

export const url = variable("HAREBELL_TEST_URL");
export const ownUrl = variable("HAREBELL_TEST_OWN_URL");
export const beatSeconds = Number(variable("HAREBELL_TEST_BEAT"));
export const idleSeconds = Number(variable("HAREBELL_TEST_IDLE"));

const PATIENCE_MS = 60_000;
let numbers = 0;

/** Set the memory watermark of the broker at `ownUrl`: 0 blocks publishers. */
export const setWatermark = (value) => execFileSync(variable("HAREBELL_TEST_OWN_COMMAND"), [
  "config", "set", "memory_high_watermark", value,
  "--data-dir", variable("HAREBELL_TEST_OWN_DATA_DIR"),
]);

/** A name that no other test uses. */
export const unique = (kind) => `${kind}-node-${process.pid}-${++numbers}`;

/** A connection that is closed after the test, wherever the test ends. */
export async function connect(t, address = url, options = {}) {
  const connection = await amqp.connect(address, options);
  let open = true;
  connection.on("close", () => { open = false; });
  connection.on("error", () => {});
  t.after(async () => { if (open) await connection.close(); });
  return connection;
}

/** A channel on a connection of its own. */
export async function channel(t) {
  return (await connect(t)).createChannel();
}

/** The error that a channel reports when the broker closes it while something is done. */
export async function channelError(connection, act) {
  const failing = await connection.createChannel();
  const failed = once(failing, "error", { signal: AbortSignal.timeout(PATIENCE_MS) });
  // The call itself is rejected too, with the same news.
  await Promise.allSettled([Promise.resolve().then(() => act(failing))]);
  const [error] = await failed;
  return error;
}

/** Wait until something is true. */
export async function until(condition, what) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await sleep(10);
  }
}
