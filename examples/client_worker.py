"""A work queue with asyncio: a producer, two workers, and retries that end in a dead-letter queue.

python examples/client_worker.py [amqp://guest:guest@localhost:5672/%2F]
"""

from __future__ import annotations

import asyncio
import sys

from harebell.client import aio

JOBS = "example.jobs"
FAILED = "example.jobs.failed"
COUNT = 20


async def declare(channel: aio.Channel) -> None:
    """Delete and declare the queues, so that they are empty."""
    for queue in (JOBS, FAILED):
        await channel.delete_queue(queue)
        await channel.declare_queue(queue, durable=True)


async def produce(connection: aio.Connection) -> None:
    """Publish the jobs and wait until the broker has confirmed all of them."""
    channel = await connection.channel()
    await asyncio.gather(
        *(
            channel.publish(b"%d" % number, routing_key=JOBS, persistent=True)
            for number in range(COUNT)
        )
    )
    print(f"{COUNT} jobs confirmed")


async def work(connection: aio.Connection, name: str) -> int:
    """Process jobs until none has arrived for a second; return the number of completed jobs."""
    channel = await connection.channel()
    done = 0
    async for job in channel.consume(JOBS, prefetch=4, timeout=1.0):
        number = int(job.body)
        await asyncio.sleep(0.01)
        if number % 7 == 0 and not job.redelivered:
            await job.nack(requeue=True)
        elif number % 7 == 0:
            await channel.publish(job.body, routing_key=FAILED, headers={"worker": name})
            await job.ack()
        else:
            done += 1
            await job.ack()
    return done


async def main(url: str) -> None:
    """Run the producer and the workers on one connection."""
    async with aio.connect(url, recover=True) as connection:
        channel = await connection.channel()
        await declare(channel)
        _, *done = await asyncio.gather(
            produce(connection), work(connection, "one"), work(connection, "two")
        )
        failed = (await channel.declare_queue(FAILED, passive=True)).message_count
        print(f"{sum(done)} jobs done, {failed} failed twice")
        for queue in (JOBS, FAILED):
            await channel.delete_queue(queue)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "amqp://"))
