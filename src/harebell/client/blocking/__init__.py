"""The blocking API: the verbs of `aio` without `await`, and without a thread.

    with connect("amqp://localhost") as connection:
        channel = connection.channel()
        channel.declare_queue("jobs", durable=True)
        channel.publish(b"work", routing_key="jobs")
        for message in channel.consume("jobs"):
            message.ack()

A connection belongs to one thread at a time. Reading, writing and heartbeats happen inside calls:
the broker closes the connection of a program that makes no call for two heartbeat intervals,
unless it uses `background_heartbeats`, a thread that only sends heartbeats.
"""

from __future__ import annotations

from harebell.client.blocking.channel import Channel, PendingConfirm, Subscription
from harebell.client.blocking.connecting import connect
from harebell.client.blocking.connection import Connection
from harebell.client.blocking.consumer import Consumer, Delivery
from harebell.client.blocking.requests import Requester
from harebell.client.blocking.worker import Worker
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
    "Subscription",
    "Worker",
    "connect",
]
