"""Metrics of queues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.management.metrics.text import COUNTER, GAUGE, HISTOGRAM, Metric, Row, Value, escaped

if TYPE_CHECKING:
    from collections.abc import Callable

    from harebell.management.metrics.ages import Ages
    from harebell.model.queue.contract import Queue

COARSE = (
    Metric("queue_messages_ready", GAUGE, "Messages that can be delivered."),
    Metric("queue_messages_unacked", GAUGE, "Messages that are delivered and not acknowledged."),
    Metric(
        "queue_messages",
        GAUGE,
        "Messages that are ready, unacknowledged, leased or waiting for a retry.",
    ),
)
CONSUMERS = (Metric("queue_consumers", GAUGE, "Consumers."),)
DELIVERY = (
    Metric("queue_get_ack_total", COUNTER, "Messages taken with basic.get and acknowledgement."),
    Metric("queue_get_total", COUNTER, "Messages taken with basic.get, no acknowledgement."),
    Metric(
        "queue_messages_delivered_ack_total",
        COUNTER,
        "Deliveries to consumers that acknowledge.",
    ),
    Metric(
        "queue_messages_delivered_total",
        COUNTER,
        "Deliveries to consumers that do not acknowledge.",
    ),
    Metric("queue_messages_redelivered_total", COUNTER, "Deliveries marked as redelivered."),
    Metric("queue_messages_acked_total", COUNTER, "Acknowledgements."),
    Metric("queue_get_empty_total", COUNTER, "basic.get of an empty queue."),
)
PUBLISHED = (Metric("queue_messages_published_total", COUNTER, "Messages that arrived."),)
INFO = (Metric("queue_info", GAUGE, "1; the labels have the type and whether it is durable."),)
AGES = (
    Metric(
        "queue_oldest_ready_message_age_seconds",
        GAUGE,
        "Time since the oldest ready message arrived.",
    ),
    Metric(
        "queue_oldest_unacked_message_age_seconds",
        GAUGE,
        "Time since the message arrived whose delivery waits longest for its acknowledgement.",
    ),
)
DELAYED = (
    Metric("queue_messages_delayed", GAUGE, "Rejected messages that wait for their retry."),
    Metric("queue_messages_leased", GAUGE, "Messages that lease groups have claimed."),
)
COUNTS = (
    Metric(
        "queue_delivery_count",
        HISTOGRAM,
        "Failed deliveries of messages that left the queue, if it counts them.",
    ),
)


def queue_type(queue: Queue) -> str:
    """Return the type of a queue by RabbitMQ's name of its module."""
    return type_name(queue.kind)


def type_name(kind: str) -> str:
    """Return RabbitMQ's name of a type of queue; types that only Harebell has are classic."""
    return f"rabbit_{kind if kind in ('quorum', 'stream') else 'classic'}_queue"


def queue_labels(queue: Queue) -> str:
    """Return the labels of a queue."""
    return f'{{vhost="{escaped(queue.vhost)}",queue="{escaped(queue.name)}"}}'


def _info_labels(queue: Queue) -> str:
    durable = "true" if queue.durable else "false"
    return f'{queue_labels(queue)[:-1]},queue_type="{queue_type(queue)}",durable="{durable}"}}'


def coarse(queue: Queue) -> tuple[Value, ...]:
    """Return the values of `COARSE`."""
    ready, unacked = queue.ready_count(), queue.unacked
    return ready, unacked, ready + unacked + queue.leased + queue.delayed_count()


def consumers(queue: Queue) -> tuple[Value, ...]:
    """Return the values of `CONSUMERS`."""
    return (len(queue.consumers),)


def delivery(queue: Queue) -> tuple[Value, ...]:
    """Return the values of `DELIVERY`."""
    counted = queue.counters
    return (
        counted.get,
        counted.get_no_ack,
        counted.deliver,
        counted.deliver_no_ack,
        counted.redeliver,
        counted.ack,
        counted.get_empty,
    )


def published(queue: Queue) -> tuple[Value, ...]:
    """Return the values of `PUBLISHED`."""
    return (queue.counters.publish,)


def delayed(queue: Queue) -> tuple[Value, ...]:
    """Return the values of `DELAYED`."""
    return queue.delayed_count(), queue.leased


def counts(queue: Queue) -> tuple[Value, ...]:
    """Return the values of `COUNTS`."""
    return (queue.delivery_counts(),)


def rows(queues: Iterator[Queue], values: Callable[[Queue], tuple[Value, ...]]) -> Iterator[Row]:
    """Yield a row for each queue."""
    for queue in queues:
        yield queue_labels(queue), values(queue)


def info_rows(queues: Iterator[Queue]) -> Iterator[Row]:
    """Yield a row of `INFO` for each queue."""
    for queue in queues:
        yield _info_labels(queue), (1,)


def age_rows(queues: Iterator[Queue], ages: Ages) -> Iterator[Row | None]:
    """Yield a row of `AGES` for each queue."""
    for _ in ages.look():
        yield None
    for queue in queues:
        yield queue_labels(queue), ages.of(queue)
