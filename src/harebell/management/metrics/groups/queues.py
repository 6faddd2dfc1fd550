"""Metrics of queues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.management.metrics.section import (
    Selection,
    Values,
    delivered_counts,
    of_each,
    section,
)
from harebell.management.metrics.text import Row, escaped

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


_MS = 1000


def type_name(kind: str) -> str:
    """Return RabbitMQ's name of a type of queue; types that only Harebell has are classic."""
    return f"rabbit_{kind if kind in ('quorum', 'stream') else 'classic'}_queue"


def _queues(chosen: Selection) -> Iterator[tuple[str, Queue]]:
    for queue in chosen.queues():
        yield f'{{vhost="{escaped(queue.vhost)}",queue="{escaped(queue.name)}"}}', queue


_of_queues = of_each(_queues)


@_of_queues("""
    by vhost queue
    gauge rabbitmq_queue_messages_ready Messages that can be delivered.
    gauge rabbitmq_queue_messages_unacked Messages that are delivered and not acknowledged.
    gauge rabbitmq_queue_messages Messages that are ready, unacknowledged, leased or waiting \
        for a retry.
""")
def coarse(queue: Queue) -> Values:
    """Return how many messages there are."""
    ready, unacked = queue.ready_count(), queue.unacked
    return ready, unacked, ready + unacked + queue.leased + queue.delayed_count()


@_of_queues("""
    by vhost queue
    gauge rabbitmq_queue_consumers Consumers.
""")
def consumers(queue: Queue) -> Values:
    """Return how many consumers there are."""
    return (len(queue.consumers),)


@_of_queues("""
    by vhost queue
    counter rabbitmq_queue_get_ack_total Messages taken with basic.get and acknowledgement.
    counter rabbitmq_queue_get_total Messages taken with basic.get, no acknowledgement.
    counter rabbitmq_queue_messages_delivered_ack_total Deliveries to consumers that acknowledge.
    counter rabbitmq_queue_messages_delivered_total Deliveries to consumers that do not acknowledge.
    counter rabbitmq_queue_messages_redelivered_total Deliveries marked as redelivered.
    counter rabbitmq_queue_messages_acked_total Acknowledgements.
    counter rabbitmq_queue_get_empty_total basic.get of an empty queue.
""")
def delivery(queue: Queue) -> Values:
    """Return how many messages left the queue, by how."""
    return delivered_counts(queue.counters)


@_of_queues("""
    by vhost queue
    counter rabbitmq_queue_messages_published_total Messages that arrived.
""")
def published(queue: Queue) -> Values:
    """Return how many messages arrived."""
    return (queue.counters.publish,)


@_of_queues("""
    by vhost queue
    gauge harebell_queue_messages_delayed Rejected messages that wait for their retry.
    gauge harebell_queue_messages_leased Messages that lease groups have claimed.
""")
def delayed(queue: Queue) -> Values:
    """Return how many messages wait for something other than a consumer."""
    return queue.delayed_count(), queue.leased


@_of_queues("""
    by vhost queue
    counter harebell_queue_messages_replaced_total Messages that newer ones of their keys have \
        replaced, in queues of last values.
""")
def replaced(queue: Queue) -> Values:
    """Return how many messages were replaced."""
    return (queue.replaced_count(),)


@_of_queues("""
    by vhost queue
    gauge harebell_queue_messages_unselected Ready messages that the selector of no consumer \
        selects.
    gauge harebell_queue_oldest_unselected_message_age_seconds Time since the oldest of them \
        arrived.
""")
def unselected(queue: Queue) -> Values:
    """Return how many messages wait for a consumer that wants them, and for how long."""
    count, age = queue.unselected()
    return count, age / _MS


@_of_queues("""
    by vhost queue
    histogram harebell_queue_delivery_count Failed deliveries of messages that left the queue, \
        if it counts them.
""")
def counts(queue: Queue) -> Values:
    """Return how often the delivery of messages failed."""
    return (queue.delivery_counts(),)


@section("""
    by vhost queue queue_type durable
    gauge rabbitmq_queue_info 1; the labels have the type and whether it is durable.
""")
def info(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each queue."""
    for labels, queue in _queues(chosen):
        kind, durable = type_name(queue.kind), "true" if queue.durable else "false"
        yield f'{labels[:-1]},queue_type="{kind}",durable="{durable}"}}', (1,)


@section("""
    by vhost queue
    gauge harebell_queue_oldest_ready_message_age_seconds Time since the oldest ready message \
        arrived.
    gauge harebell_queue_oldest_unacked_message_age_seconds Time since the message arrived whose \
        delivery waits longest for its acknowledgement.
""")
def ages(chosen: Selection) -> Iterator[Row | None]:
    """Yield a row for each queue."""
    for _ in chosen.ages.look():
        yield None
    for labels, queue in _queues(chosen):
        yield labels, chosen.ages.of(queue)
