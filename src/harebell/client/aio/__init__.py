"""The asyncio API.

    async with connect("amqp://localhost") as connection:
        channel = await connection.channel()
        await channel.declare_queue("jobs", durable=True)
        await channel.publish(b"work", routing_key="jobs")
        async for message in channel.consume("jobs"):
            await message.ack()

A connection belongs to one event loop.
"""

from __future__ import annotations

from harebell.client.aio.channel import Channel, PendingConfirm
from harebell.client.aio.connecting import connect
from harebell.client.aio.connection import Connection
from harebell.client.aio.consumer import Consumer, Delivery
from harebell.client.aio.requests import Requester
from harebell.client.aio.worker import Worker
from harebell.client.message import Message
from harebell.client.protocol.recovery import Recovery

__all__ = [
    "Channel",
    "Connection",
    "Consumer",
    "Delivery",
    "Message",
    "PendingConfirm",
    "Recovery",
    "Requester",
    "Worker",
    "connect",
]
