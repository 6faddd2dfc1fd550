"""The FastStream service that the FastStream tests start: `python -m` runs it."""

from __future__ import annotations

import asyncio
import os

from faststream import AckPolicy, FastStream
from faststream.rabbit import (
    Channel,
    ExchangeType,
    QueueType,
    RabbitBroker,
    RabbitExchange,
    RabbitMessage,
    RabbitQueue,
)
from pydantic import BaseModel

from tests.interop.clients.processes import URL_VARIABLE, mark

broker = RabbitBroker(os.environ.get(URL_VARIABLE, "amqp://nobody@127.0.0.1:1/"))
app = FastStream(broker)

TOPIC = RabbitExchange("fs-events", type=ExchangeType.TOPIC, auto_delete=True)
HEADERS = RabbitExchange("fs-headers", type=ExchangeType.HEADERS, auto_delete=True)
DEAD = RabbitQueue("fs-dead", durable=True)
JOBS = RabbitQueue(
    "fs-jobs",
    durable=True,
    arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "fs-dead"},
)
QUORUM = RabbitQueue("fs-quorum", queue_type=QueueType.QUORUM, durable=True)
STREAM = RabbitQueue(
    "fs-stream",
    queue_type=QueueType.STREAM,
    durable=True,
)


class Order(BaseModel):
    """What a JSON body has to be."""

    item: str
    count: int


@broker.subscriber("fs-order")
async def order(order: Order) -> dict[str, int]:
    """Answer a request, whose body was checked."""
    return {order.item: order.count * 2}


@broker.subscriber(RabbitQueue("fs-warm", auto_delete=True, routing_key="sensor.*.warm"), TOPIC)
async def warm(body: str, message: RabbitMessage) -> None:
    """One word of the key may be anything."""
    mark("topic", f"{message.raw_message.routing_key} {body}")


@broker.subscriber(
    RabbitQueue("fs-red", auto_delete=True, bind_arguments={"colour": "red", "x-match": "any"}),
    HEADERS,
)
async def red(body: str) -> None:
    """Only what has the header."""
    mark("headers", body)


@broker.subscriber(JOBS, ack_policy=AckPolicy.REJECT_ON_ERROR)
async def job(body: str) -> None:
    """Reject what cannot be done."""
    if body == "bad":
        raise ValueError(body)
    mark("jobs", body)


@broker.subscriber(DEAD)
async def bury(body: str, message: RabbitMessage) -> None:
    """Take what was rejected."""
    (death,) = message.headers["x-death"]
    mark("dead", f"{body} {death['reason']} {death['queue']} {death['count']}")


@broker.subscriber(QUORUM, ack_policy=AckPolicy.NACK_ON_ERROR)
async def at_third(body: str, message: RabbitMessage) -> None:
    """Give a message back twice."""
    count = message.headers.get("x-delivery-count", 0)
    mark("quorum", f"{body} {count}")
    if count < 2:
        raise ValueError(body)


@broker.subscriber("fs-in")
@broker.publisher("fs-out")
async def pass_on(body: str) -> str:
    """From one queue to the next."""
    return body.upper()


@broker.subscriber("fs-out")
async def end(body: str) -> None:
    """The end of the way."""
    mark("passed", body)


@broker.subscriber(
    STREAM, channel=Channel(prefetch_count=10), consume_args={"x-stream-offset": "first"}
)
async def replay(body: str) -> None:
    """Read a stream from its start."""
    mark("stream", body)


if __name__ == "__main__":
    asyncio.run(app.run())
