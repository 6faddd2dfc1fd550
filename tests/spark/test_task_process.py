"""The process of Spark's tasks: what a collection of garbage after a task has to look at."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.source import QueueSource
from tests.spark.asking import BODIES, bodies, gathered, publish
from tests.spark.conftest import PATIENT
from tests.spark.tasks import Query, as_task


class Cycle:
    """An object that only a collection frees."""

    def __init__(self) -> None:
        self.own = self


def counted(task: Callable[[int], None]) -> list[int]:
    """How many objects a collection looks at, before and after each of three tasks."""
    found = [len(gc.get_objects())]
    for number in range(3):
        task(number)
        gc.collect()
        found.append(len(gc.get_objects()))
    cycle = weakref.ref(Cycle())
    gc.collect()
    assert cycle() is None, "what comes later is collected as before"
    return found


def counted_reads(url: str, queue: str) -> list[int]:
    """Counts of tasks that read."""
    reader: QueueStreamReader = QueueSource(
        PATIENT | {"url": url, "queue": queue, "startingOffsets": "earliest"}
    ).streamReader(BODIES)
    start = reader.initialOffset()
    end = gathered(reader, start)

    def read(number: int) -> None:
        with as_task(number, number):
            assert bodies(reader, start, end) == list(range(10))

    found = counted(read)
    reader.stop()
    return found


def counted_writes(url: str, queue: str) -> list[int]:
    """Counts of tasks that write."""
    schema = pa.schema([("value", pa.binary())])
    query = Query({"url": url, "queue": queue}, schema)
    row = pa.record_batch([pa.array([b"x"], pa.binary())], schema=schema)
    return counted(lambda number: query.commit(number, query.write(number, 0, [row])))


@pytest.fixture
def stream(channel: Any, queue: str) -> Iterator[str]:
    """A stream that is deleted afterwards."""
    name = f"{queue}.stream"
    channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    yield name
    channel.connection.channel().queue_delete(name)


@pytest.mark.parametrize("kind", ["reads", "writes"])
def test_a_collection_after_a_later_task_leaves_out_what_was_there(
    broker_url: str, channel: Any, stream: str, kind: str
) -> None:
    publish(channel, stream, 0, 10)
    # A process of its own, as Spark has it: what is left out stays so.
    name = f"counted_{kind}"
    code = f"from {__name__} import {name}; print({name}({broker_url!r}, {stream!r}))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    before, first, second, third = map(int, ran.stdout.strip("[]\n").split(","))
    assert first > before // 2
    assert second < first // 20
    assert third < first // 20


def test_outside_of_a_task_nothing_is_left_out(broker_url: str, channel: Any, stream: str) -> None:
    publish(channel, stream, 0, 10)
    left_out = gc.get_freeze_count()
    options = PATIENT | {"url": broker_url, "queue": stream, "startingOffsets": "earliest"}
    reader = QueueSource(options).streamReader(BODIES)
    start = reader.initialOffset()
    for _ in range(3):
        assert bodies(reader, start, gathered(reader, start)) == list(range(10))
    reader.stop()
    assert gc.get_freeze_count() == left_out
