"""Streaming queries that are measured: how many rows a second, and how long a micro-batch takes.

Both are read from what Spark itself reports of its micro-batches. The first one of a query is not
counted, for it starts Python workers; a rate is steady from the second on.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from bench.peer import BenchError

_PATIENCE_SECONDS = 240
_LOOK_SECONDS = 0.02
_INTERVAL_SECONDS = 1


class Batch(msgspec.Struct, frozen=True):
    """A micro-batch.

    Args:
        rows: how many it had.
        begin_ms: when it began to look for them, in milliseconds since 1970.
        end_ms: when it was in Spark's commit log.
        offset: where it ended, as its source says.
        look_ms: time in which its source found the end.
    """

    rows: int
    begin_ms: float
    end_ms: float
    offset: str
    look_ms: float = 0.0


def drained(rows: DataFrame, sink: str, expected: int, **options: str) -> float:
    """Run a query until its source is empty; its steady rate.

    Args:
        rows: from readStream.
        sink: the format that it is written to.
        expected: how many rows there are.
        options: of the sink.

    Raises:
        BenchError: there were other numbers of rows, or it took too long.
    """
    with tempfile.TemporaryDirectory(prefix="harebell-bench-") as directory:
        options = {"checkpointLocation": f"{directory}/checkpoint"} | options
        writer = rows.writeStream.format(sink).options(**options)
        query = writer.trigger(availableNow=True).start()
        ended = query.awaitTermination(_PATIENCE_SECONDS)
        batches = _batches(query.recentProgress)
        query.stop()
    if not ended:
        raise BenchError(f"a query into {sink} was not done after {_PATIENCE_SECONDS:g} seconds")
    found = sum(batch.rows for batch in batches)
    if found != expected:
        raise BenchError(f"{found} rows came, and {expected} were there")
    return steady(batches)


def steady(batches: list[Batch]) -> float:
    """Rows per second from the second micro-batch on; of the only one if there is no other."""
    counted = [batch for batch in batches if batch.rows]
    counted = counted[1:] or counted
    if not counted:
        raise BenchError("there were no rows")
    seconds = (counted[-1].end_ms - counted[0].begin_ms) / 1000
    return sum(batch.rows for batch in counted) / max(seconds, 0.001)


def latencies(
    rows: DataFrame,
    samples: int,
    pause: Callable[[], float],
    send: Callable[[], None] | None = None,
) -> list[float]:
    """Milliseconds from a row to the end of its micro-batch, in a query that waits for rows.

    Args:
        rows: from readStream, which has none yet.
        samples: how many rows are sent one after the other.
        pause: seconds before each is sent.
        send: sends one; None for a source that makes one by itself, and says when in its offset.

    Raises:
        BenchError: a row did not come.
    """
    with tempfile.TemporaryDirectory(prefix="harebell-bench-") as directory:
        writer = rows.writeStream.format("noop").option("checkpointLocation", directory + "/c")
        query = writer.start()
        try:
            latencies: list[float] = []
            seen = -1
            # The first ones start workers and are not counted.
            for number in range(-2, samples):
                time.sleep(pause())
                sent_ms = time.time() * 1000
                if send is not None:
                    send()
                seen, batch = _next(query, seen)
                if send is None:
                    sent_ms = msgspec.json.decode(batch.offset)["ms"]
                if number >= 0:
                    latencies.append(batch.end_ms - sent_ms)
            return latencies
        finally:
            query.stop()


def until_called(
    rows: DataFrame,
    samples: int,
    pause: Callable[[], float],
    send: Callable[[bytes], None] | None = None,
) -> list[float]:
    """Milliseconds from a row to the call of the function of foreachBatch with its micro-batch.

    Args:
        rows: from readStream, which has none yet.
        samples: how many rows are sent one after the other.
        pause: seconds before each is sent.
        send: sends a body; None for a source that makes rows by itself, and says when.

    Raises:
        BenchError: a row did not come.
    """
    called: list[tuple[int, float]] = []

    def note(frame: DataFrame, number: int) -> None:
        at = time.time() * 1000
        # A micro-batch without rows, such as one after a restart, is no answer to a row.
        if frame.count():
            called.append((number, at))

    with tempfile.TemporaryDirectory(prefix="harebell-bench-") as directory:
        writer = rows.writeStream.foreachBatch(note).option("checkpointLocation", directory + "/c")
        query = writer.trigger(processingTime="0 seconds").start()
        try:
            found: list[float] = []
            seen = -1
            for number in range(-2, samples):
                time.sleep(pause())
                sent_ms = time.time() * 1000
                if send is not None:
                    send(str(number).encode())
                seen, batch = _next(query, seen)
                if send is None:
                    sent_ms = msgspec.json.decode(batch.offset)["ms"]
                at = next(at for batch_id, at in called if batch_id == seen)
                if number >= 0:
                    found.append(at - sent_ms)
            return found
        finally:
            query.stop()


def looks(rows: DataFrame, samples: int, send: Callable[[], None]) -> list[float]:
    """Milliseconds in which triggers find the rows that wait in all queues of a source.

    Args:
        rows: from readStream; its queues have no rows.
        samples: how many triggers are measured.
        send: puts a row into every queue.

    Raises:
        BenchError: rows did not come.
    """
    with tempfile.TemporaryDirectory(prefix="harebell-bench-") as directory:
        writer = rows.writeStream.format("noop").option("checkpointLocation", directory + "/c")
        query = writer.trigger(processingTime=f"{_INTERVAL_SECONDS} seconds").start()
        try:
            durations: list[float] = []
            seen = -1
            for number in range(-2, samples):
                # Rows come between two triggers: a trigger never waits for one.
                time.sleep(_INTERVAL_SECONDS / 4)
                send()
                seen, batch = _next(query, seen)
                if number >= 0:
                    durations.append(batch.look_ms)
            return durations
        finally:
            query.stop()


def _next(query: Any, after: int) -> tuple[int, Batch]:
    """The first micro-batch with rows after one, and its number."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        last = query.lastProgress
        if last is not None and last["batchId"] > after and last["numInputRows"]:
            return int(last["batchId"]), _batches([last])[0]
        if (error := query.exception()) is not None:
            raise BenchError(f"the query failed: {error}")
        time.sleep(_LOOK_SECONDS)
    raise BenchError(f"a row was not processed within {_PATIENCE_SECONDS:g} seconds")


def _batches(progress: Iterable[Any]) -> list[Batch]:
    batches = []
    for one in progress:
        begin = datetime.fromisoformat(one["timestamp"]).timestamp() * 1000
        took = one["durationMs"].get("triggerExecution", 0)
        offset = str(one["sources"][0]["endOffset"])
        look_ms = one["durationMs"].get("latestOffset", 0)
        batches.append(Batch(one["numInputRows"], begin, begin + took, offset, look_ms))
    return batches
