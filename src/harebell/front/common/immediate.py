"""The flag immediate of publishing: only to a consumer that takes the message at once.

AMQP before 0-9-1 as RabbitMQ speaks it lets a publisher ask for that. A queue can deliver at once
when nothing waits in it and one of its consumers is ready; every other queue does not get the
message, and when that is all of them it goes back.
"""

from __future__ import annotations

from harebell.base.message import Message
from harebell.model.queue.kind import Queue


def takers(queues: tuple[Queue, ...], message: Message) -> tuple[Queue, ...]:
    """Those queues that would deliver a message the moment they get it."""
    return tuple(queue for queue in queues if _delivers_at_once(queue, message))


def _delivers_at_once(queue: Queue, message: Message) -> bool:
    if queue.ready_count():
        return False
    return any(
        consumer.ready()
        for consumer in queue.consumers
        if not consumer.excluded or consumer.excluded != message.origin
    )
