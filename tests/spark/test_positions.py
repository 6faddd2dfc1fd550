"""Streams, and queues that are only looked at, without a JVM: positions in the checkpoint."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harebell.client import blocking
from harebell.spark.reading.data_loss_policy import DataLoss
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.offsets import OffsetError
from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.source import QueueSource
from tests.spark.asking import BODIES, bodies, drained, gathered, publish, rows, waiting
from tests.spark.conftest import PATIENT

Readers = Callable[..., QueueStreamReader]
STREAM = {"x-queue-type": "stream"}


@pytest.fixture
def stream(channel: Any, queue: str) -> Iterator[str]:
    """A stream that is deleted afterwards."""
    name = f"{queue}.stream"
    channel.queue_declare(name, durable=True, arguments=STREAM)
    yield name
    channel.connection.channel().queue_delete(name)


@pytest.fixture
def reader(broker_url: str) -> Iterator[Readers]:
    """Makes readers of a queue, which are stopped afterwards."""
    made: list[QueueStreamReader] = []

    def make(queue: str, **options: str) -> QueueStreamReader:
        given = PATIENT | {"url": broker_url, "queue": queue} | options
        made.append(QueueSource(given).streamReader(BODIES))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def taken(one: QueueStreamReader) -> list[int]:
    """What an AvailableNow query reads from its first offset on."""
    one.prepareForTriggerAvailableNow()
    return [number for batch in drained(one, one.initialOffset()) for number in batch]


def test_a_stream_is_read_from_its_end_unless_told_otherwise(
    reader: Readers, channel: Any, stream: str
) -> None:
    publish(channel, stream, 0, 5)
    one = reader(stream)
    start = one.initialOffset()
    publish(channel, stream, 5, 8)
    # Spark asks again, and what came between must not be missed.
    assert one.initialOffset() == start
    assert list(start[stream]) == ["generation", "position", "eras"]
    assert bodies(one, start, gathered(one, start)) == [5, 6, 7]


def test_a_stream_is_read_from_where_the_option_says(
    reader: Readers, channel: Any, stream: str
) -> None:
    publish(channel, stream, 0, 10)
    assert taken(reader(stream, startingOffsets="earliest")) == list(range(10))
    assert taken(reader(stream, startingOffsets="7")) == [7, 8, 9]
    assert taken(reader(stream, startingOffsets=f'{{"{stream}": 9}}')) == [9]
    assert taken(reader(stream, startingOffsets=f'{{"{stream}": -2}}')) == list(range(10))
    assert taken(reader(stream, startingOffsets="latest")) == []


def test_a_stream_is_read_from_a_time_on(reader: Readers, channel: Any, stream: str) -> None:
    publish(channel, stream, 0, 3)
    # Times are whole milliseconds.
    time.sleep(0.05)
    between = int(time.time() * 1000)
    time.sleep(0.05)
    publish(channel, stream, 3, 6)
    assert taken(reader(stream, startingTimestamp=str(between))) == [3, 4, 5]
    assert taken(reader(stream, startingOffsets="2001-01-01T00:00:00Z")) == list(range(6))
    late = str(between + 3_600_000)
    with pytest.raises(SourceError, match=r"no message of .* or later: choose an earlier time"):
        reader(stream, startingTimestamp=late).initialOffset()
    mild = {"startingTimestamp": late, "startingOffsetsByTimestampStrategy": "latest"}
    assert taken(reader(stream, **mild)) == []


def test_a_place_behind_the_end_is_refused(reader: Readers, channel: Any, stream: str) -> None:
    publish(channel, stream, 0, 3)
    with pytest.raises(SourceError, match=r"Offsets says 9 for queue .* ends at position 3"):
        reader(stream, startingOffsets="9").initialOffset()


def test_a_micro_batch_of_a_stream_can_be_read_as_often_as_wanted(
    reader: Readers, channel: Any, stream: str
) -> None:
    publish(channel, stream, 0, 10)
    dead = reader(stream, startingOffsets="earliest", maxOffsetsPerTrigger="4")
    start = dead.initialOffset()
    planned = gathered(dead, start)
    before = rows(dead, start, planned)
    assert [row["offset"] for row in before] == [0, 1, 2, 3]
    dead.stop()
    alive = reader(stream, maxOffsetsPerTrigger="4")
    assert rows(alive, start, planned) == before
    assert bodies(alive, planned, gathered(alive, planned)) == [4, 5, 6, 7]
    assert bodies(alive, start, planned) == [0, 1, 2, 3]


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once", "peek"])
def test_a_stream_is_read_by_positions_whatever_is_promised(
    reader: Readers, channel: Any, stream: str, delivery: str
) -> None:
    publish(channel, stream, 0, 5)
    assert taken(reader(stream, startingOffsets="earliest", delivery=delivery)) == [0, 1, 2, 3, 4]


def test_at_most_once_does_not_read_again_what_another_process_planned(
    reader: Readers, channel: Any, stream: str
) -> None:
    publish(channel, stream, 0, 5)
    options = {"startingOffsets": "earliest", "delivery": "at-most-once"}
    dead = reader(stream, **options)
    start = dead.initialOffset()
    planned = gathered(dead, start)
    assert bodies(dead, start, planned) == [0, 1, 2, 3, 4]
    alive = reader(stream, **options)
    assert alive.partitions(start, planned) == []
    publish(channel, stream, 5, 7)
    assert bodies(alive, planned, gathered(alive, planned)) == [5, 6]


def test_octets_limit_a_micro_batch_of_a_stream(reader: Readers, channel: Any, stream: str) -> None:
    for _ in range(10):
        channel.basic_publish("", stream, bytes(100_000))
    one = reader(stream, startingOffsets="earliest", maxBytesPerTrigger="350000")
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    sizes = []
    while (end := one.latestOffset(start, one.getDefaultReadLimit())) != start:
        sizes.append(len(rows(one, start, end)))
        start = end
    assert sum(sizes) == 10
    assert max(sizes) <= 4


def test_a_micro_batch_of_a_stream_waits_for_enough_messages(
    reader: Readers, channel: Any, stream: str
) -> None:
    publish(channel, stream, 0, 5)
    limits = {"startingOffsets": "earliest", "longPollMs": "0", "minOffsetsPerTrigger": "8"}
    one = reader(stream, **limits)
    start = one.initialOffset()
    assert one.latestOffset(start, one.getDefaultReadLimit()) == start
    publish(channel, stream, 5, 8)
    assert bodies(one, start, gathered(one, start)) == list(range(8))
    limits["minOffsetsPerTrigger"] = "100"
    late = reader(stream, **limits, maxTriggerDelay="1ms")
    assert bodies(late, start, gathered(late, start)) == list(range(8))
    assert taken(reader(stream, **limits)) == list(range(8))


def test_available_now_ends_where_the_stream_ended(
    reader: Readers, channel: Any, stream: str
) -> None:
    publish(channel, stream, 0, 10)
    one = reader(stream, startingOffsets="earliest", maxOffsetsPerTrigger="4")
    one.prepareForTriggerAvailableNow()
    publish(channel, stream, 10, 20)
    assert drained(one, one.initialOffset()) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_retention_that_has_passed_the_checkpoint_is_noticed(
    reader: Readers, broker_url: str, channel: Any, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"{queue}.short"
    kept = {"x-max-length-bytes": 50_000, "x-stream-max-segment-size-bytes": 10_000}
    channel.queue_declare(name, durable=True, arguments=STREAM | kept)
    try:
        publish(channel, name, 0, 10)
        dead = reader(name, startingOffsets="earliest", maxOffsetsPerTrigger="4")
        start = dead.initialOffset()
        planned = gathered(dead, start)
        dead.stop()
        with blocking.connect(broker_url) as connection:
            large = connection.channel()
            large.publish_many((b"9" * 1_000 for _ in range(200)), routing_key=name)
        told = r"positions 0 to \d+ of stream .* retention has let them go.*failOnDataLoss=false"
        with pytest.raises(DataLoss, match=told):
            reader(name).partitions(start, planned)
        with pytest.raises(DataLoss, match=r"positions 4 to \d+ of stream"):
            reader(name).latestOffset(planned, dead.getDefaultReadLimit())
        bold = reader(name, failOnDataLoss="false")
        bold.prepareForTriggerAvailableNow()
        with caplog.at_level(logging.WARNING, "harebell.spark"):
            assert rows(bold, start, planned) == []
            end = bold.latestOffset(planned, bold.getDefaultReadLimit())
        assert "retention has let them go" in caplog.text
        found = rows(bold, planned, end)
        assert found[-1]["offset"] == 209
        assert all(len(row["value"]) == 1_000 for row in found)
    finally:
        channel.queue_delete(name)


def test_a_stream_that_was_declared_again_is_noticed(
    reader: Readers, channel: Any, stream: str
) -> None:
    publish(channel, stream, 0, 5)
    dead = reader(stream, startingOffsets="earliest")
    start = dead.initialOffset()
    planned = gathered(dead, start)
    dead.stop()
    channel.queue_delete(stream)
    channel.queue_declare(stream, durable=True, arguments=STREAM)
    publish(channel, stream, 10, 12)
    with pytest.raises(DataLoss, match="was deleted and declared again since the checkpoint"):
        reader(stream).partitions(start, planned)
    bold = reader(stream, failOnDataLoss="false")
    assert bold.partitions(start, planned) == []
    assert bodies(bold, planned, gathered(bold, planned)) == [10, 11]


def test_looking_takes_nothing(reader: Readers, channel: Any, queue: str) -> None:
    publish(channel, queue, 0, 5)
    assert taken(reader(queue, delivery="peek")) == [0, 1, 2, 3, 4]
    assert taken(reader(queue, delivery="peek")) == [0, 1, 2, 3, 4]
    assert waiting(channel, queue) == 5
    assert not channel.basic_get(queue)[0].redelivered


def test_looking_passes_over_what_others_have_taken(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 5)
    one = reader(queue, delivery="peek")
    start = one.initialOffset()
    end = gathered(one, start)
    for _ in range(2):
        channel.basic_get(queue, auto_ack=True)
    waiting(channel, queue)
    assert bodies(one, start, end) == [2, 3, 4]


def test_a_queue_that_is_deleted_stops_the_query(
    reader: Readers, channel: Any, stream: str
) -> None:
    publish(channel, stream, 0, 5)
    one = reader(stream, startingOffsets="earliest")
    start = one.initialOffset()
    end = gathered(one, start)
    (task,) = one.partitions(start, end)
    channel.queue_delete(stream)
    with pytest.raises(SourceError, match="was deleted while the query read it"):
        list(one.read(task))
    with pytest.raises(SourceError, match="there is no queue"):
        one.latestOffset(end, one.getDefaultReadLimit())
    channel.queue_declare(stream, durable=True, arguments=STREAM)


def test_the_lag_is_where_the_stream_ends(reader: Readers, channel: Any, stream: str) -> None:
    publish(channel, stream, 0, 25)
    one = reader(stream, startingOffsets="earliest", maxOffsetsPerTrigger="10")
    end = gathered(one, one.initialOffset())
    report = one.reportLatestOffset()
    assert report is not None
    assert (end[stream]["position"], report[stream]["position"]) == (10, 25)


@pytest.mark.parametrize("requested", [{}, {"failOnDataLoss": "false"}])
def test_a_stream_that_is_a_classic_queue_now_is_not_only_looked_at(
    reader: Readers, channel: Any, stream: str, requested: dict[str, str]
) -> None:
    start = reader(stream).initialOffset()
    channel.queue_delete(stream)
    channel.queue_declare(stream, durable=True)
    one = reader(stream, **requested)
    with pytest.raises(
        OffsetError, match=rf"^queue '{stream}' was deleted and .*, and is a classic queue now"
    ):
        one.latestOffset(start, one.getDefaultReadLimit())


@pytest.mark.parametrize("requested", [{}, {"failOnDataLoss": "false"}])
def test_a_queue_that_is_a_stream_now_is_told_so(
    reader: Readers, channel: Any, queue: str, requested: dict[str, str]
) -> None:
    start = reader(queue).initialOffset()
    channel.queue_delete(queue)
    channel.queue_declare(queue, durable=True, arguments=STREAM)
    one = reader(queue, **requested)
    with pytest.raises(
        OffsetError, match=rf"^queue '{queue}' was deleted and .*, and is a stream queue now"
    ):
        one.latestOffset(start, one.getDefaultReadLimit())


def test_a_query_that_only_looked_does_not_begin_to_take(
    reader: Readers, channel: Any, queue: str
) -> None:
    start = reader(queue, delivery="peek").initialOffset()
    publish(channel, queue, 0, 3)
    for delivery in ("exactly-once", "at-least-once"):
        one = reader(queue, delivery=delivery)
        with pytest.raises(OffsetError, match=f"is {delivery}, but .* was begun with peek"):
            one.latestOffset(start, one.getDefaultReadLimit())
    one = reader(queue)
    assert bodies(one, start, one.latestOffset(start, one.getDefaultReadLimit())) == [0, 1, 2]
    assert waiting(channel, queue) == 3
