"""Queues of a test, and a stream reader asked as Spark asks it, without a JVM."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql.types import StructType

from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.schema import MESSAGE
from harebell.testing.stream_calls import read_rows
from tests.patience import SECONDS

BODIES = StructType([MESSAGE["value"], MESSAGE["offset"], MESSAGE["redelivered"]])


def publish(channel: Any, queue: str, first: int, end: int) -> None:
    for number in range(first, end):
        channel.basic_publish("", queue, b"%d" % number)


def waiting(channel: Any, queue: str) -> int:
    """Messages that are ready; those that somebody holds are not."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def taken(channel: Any, queue: str) -> list[tuple[Any, Any, bytes]]:
    """Method, properties and body of every message of a queue, taken out of it."""
    messages = []
    while (message := channel.basic_get(queue, auto_ack=True))[0] is not None:
        messages.append(message)
    return messages


def taken_bodies(channel: Any, queue: str) -> list[bytes]:
    """The bodies of every message of a queue, taken out of it."""
    return [body for _, _, body in taken(channel, queue)]


def gathered(of: QueueStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    """The next micro-batch that is not empty."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        end = of.latestOffset(start, of.getDefaultReadLimit())
        if end != start:
            return end
    raise AssertionError(f"nothing came for {SECONDS:g} seconds")


def rows(of: QueueStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """What executors would read, through a pickled reader as they have it."""
    # As Spark does before each micro-batch but the first one.
    of.commit(start)
    return read_rows(of, of.partitions(start, end))


def bodies(of: QueueStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    return [int(row["value"]) for row in rows(of, start, end)]


def drained(of: QueueStreamReader, start: dict[str, Any]) -> list[list[int]]:
    """The micro-batches of an AvailableNow query from here on."""
    batches = []
    while (end := of.latestOffset(start, of.getDefaultReadLimit())) != start:
        batches.append(bodies(of, start, end))
        start = end
    return batches
