"""A stream reader asked as Spark asks it, without a JVM."""

from __future__ import annotations

import pickle
import time
from typing import Any

from pyspark.sql.types import StructType

from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.schema import MESSAGE
from tests.patience import SECONDS

BODIES = StructType([MESSAGE["value"], MESSAGE["offset"], MESSAGE["redelivered"]])


def publish(channel: Any, queue: str, first: int, end: int) -> None:
    for number in range(first, end):
        channel.basic_publish("", queue, b"%d" % number)


def waiting(channel: Any, queue: str) -> int:
    """Messages that are ready; those that somebody holds are not."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)


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
    executor: QueueStreamReader = pickle.loads(pickle.dumps(of))
    return [
        row
        for partition in of.partitions(start, end)
        for batch in executor.read(partition)
        for row in batch.to_pylist()
    ]


def bodies(of: QueueStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    return [int(row["value"]) for row in rows(of, start, end)]


def drained(of: QueueStreamReader, start: dict[str, Any]) -> list[list[int]]:
    """The micro-batches of an AvailableNow query from here on."""
    batches = []
    while (end := of.latestOffset(start, of.getDefaultReadLimit())) != start:
        batches.append(bodies(of, start, end))
        start = end
    return batches
