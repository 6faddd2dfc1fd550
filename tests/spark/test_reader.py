"""The stream reader over plain AMQP, without a JVM: called as Spark calls it, a real broker."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from harebell.client import blocking
from harebell.client.errors import AuthenticationFailed, ConnectionFailed
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.offsets import OffsetError
from harebell.spark.reading.spooled import receiver
from harebell.spark.reading.spooled.queue_consumer import QueueConsumer
from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.schema import MESSAGE
from harebell.spark.source import QueueSource
from tests.patience import eventually
from tests.ports import free_port
from tests.relay import relay
from tests.running import running_broker
from tests.spark.asking import BODIES, bodies, drained, gathered, publish, rows, waiting
from tests.spark.conftest import PATIENT
from tests.spark.hasty import Hasty

Readers = Callable[..., QueueStreamReader]
PLAIN = {"delivery": "at-least-once"}
"""Over plain AMQP, as with brokers that have no leases."""


@pytest.fixture
def reader(broker_url: str, queue: str, tmp_path: Path) -> Iterator[Readers]:
    """Makes readers of the queue, which are stopped afterwards."""
    made: list[QueueStreamReader] = []

    def make(schema: StructType = BODIES, **options: str) -> QueueStreamReader:
        given = {"url": broker_url, "queue": queue, "spoolDir": str(tmp_path / "spool")} | PLAIN
        given = PATIENT | given | options
        made.append(QueueSource(given).streamReader(schema))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def test_a_query_begins_at_the_same_offset_however_often_it_is_asked(reader: Readers) -> None:
    one = reader()
    assert one.initialOffset() == one.initialOffset() == {"position": 0, "spool": ""}


def test_messages_come_in_order_and_are_numbered(reader: Readers, channel: Any, queue: str) -> None:
    publish(channel, queue, 0, 100)
    one = reader()
    end = gathered(one, one.initialOffset())
    found = rows(one, one.initialOffset(), end)
    assert [int(row["value"]) for row in found] == list(range(100))
    assert [row["offset"] for row in found] == list(range(100))
    assert not any(row["redelivered"] for row in found)


def test_a_micro_batch_is_no_larger_than_asked_for(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 25)
    one = reader(maxOffsetsPerTrigger="10")
    assert one.getDefaultReadLimit() == ReadMaxRows(10)
    one.prepareForTriggerAvailableNow()
    sizes = [len(batch) for batch in drained(one, one.initialOffset())]
    assert sizes == [10, 10, 5]


def test_nothing_is_acknowledged_before_spark_has_committed_it(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    one = reader(maxOffsetsPerTrigger="5")
    first = gathered(one, one.initialOffset())
    assert bodies(one, one.initialOffset(), first) == [0, 1, 2, 3, 4]
    one.commit(first)
    one.stop()
    assert waiting(channel, queue) == 10


def test_asking_for_what_comes_after_acknowledges_what_came_before(
    reader: Readers, channel: Any, queue: str, tmp_path: Path
) -> None:
    publish(channel, queue, 0, 10)
    one = reader(maxOffsetsPerTrigger="5")
    first = gathered(one, one.initialOffset())
    second = gathered(one, first)
    assert bodies(one, first, second) == [5, 6, 7, 8, 9]
    assert len(list((tmp_path / "spool").rglob("*-*.arrow"))) == 1
    one.stop()
    assert waiting(channel, queue) == 5


def test_no_more_messages_are_held_than_a_micro_batch_has(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 30)
    one = reader(maxOffsetsPerTrigger="10")
    gathered(one, one.initialOffset())
    time.sleep(1.5)
    assert waiting(channel, queue) == 20


def test_more_messages_than_amqp_can_prefetch_fit_into_one_micro_batch(
    reader: Readers, broker_url: str, channel: Any, queue: str
) -> None:
    with blocking.connect(broker_url) as connection:
        many = (b"%d" % number for number in range(70_000))
        connection.channel().publish_many(many, routing_key=queue)
    publish(channel, queue, 70_000, 70_100)
    one = reader(maxOffsetsPerTrigger="70000")
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    end = one.latestOffset(start, one.getDefaultReadLimit())
    assert bodies(one, start, end) == list(range(70_000))
    assert waiting(channel, queue) == 100
    assert drained(one, end) == [list(range(70_000, 70_100))]


def test_octets_end_a_micro_batch_also_of_what_came_while_it_began(
    reader: Readers, channel: Any, queue: str
) -> None:
    for number in range(600):
        channel.basic_publish("", queue, b"%1000d" % number)
    one = reader(maxBytesPerTrigger="100k")
    one.prepareForTriggerAvailableNow()
    found = drained(one, one.initialOffset())
    assert [number for batch in found for number in batch] == list(range(600))
    # Each record batch of a hundred kilobytes has about as many messages.
    assert max(map(len, found)) < 130


@pytest.mark.parametrize(
    ("limit", "consumers"), [(200_000, 4), (2**63 - 1, 1)], ids=["some", "any number"]
)
def test_as_many_consumers_are_made_as_a_micro_batch_needs_and_one_for_any_number(
    reader: Readers, channel: Any, queue: str, limit: int, consumers: int
) -> None:
    publish(channel, queue, 0, 5)
    one = reader(maxOffsetsPerTrigger=str(limit))
    start = one.initialOffset()
    assert bodies(one, start, gathered(one, start)) == [0, 1, 2, 3, 4]
    assert channel.queue_declare(queue, passive=True).method.consumer_count == consumers


def test_an_idle_query_waits_a_little_and_answers_with_the_same_offset(reader: Readers) -> None:
    one = reader()
    start = one.initialOffset()
    assert one.latestOffset(start, one.getDefaultReadLimit()) is start
    began = time.monotonic()
    assert one.latestOffset(start, one.getDefaultReadLimit()) is start
    assert time.monotonic() - began > 0.15


def test_messages_that_come_while_it_waits_are_not_waited_for_longer(
    reader: Readers, channel: Any, queue: str
) -> None:
    one = reader(longPollMs="60000")
    start = one.initialOffset()
    publish(channel, queue, 0, 3)
    began = time.monotonic()
    end = one.latestOffset(start, one.getDefaultReadLimit())
    assert time.monotonic() - began < 50
    assert 1 <= end["position"] <= 3


def test_available_now_ends_with_what_was_there_and_leaves_nothing_behind(
    reader: Readers, channel: Any, queue: str, tmp_path: Path
) -> None:
    publish(channel, queue, 0, 20)
    one = reader(maxOffsetsPerTrigger="8")
    one.prepareForTriggerAvailableNow()
    publish(channel, queue, 20, 30)
    batches = drained(one, one.initialOffset())
    assert [n for batch in batches for n in batch] == list(range(20))
    assert waiting(channel, queue) == 10
    assert list((tmp_path / "spool").iterdir()) == []


def test_available_now_on_an_empty_queue_ends_at_once(reader: Readers) -> None:
    one = reader()
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    assert one.latestOffset(start, one.getDefaultReadLimit()) is start


def test_available_now_does_not_wait_for_messages_that_another_consumer_took(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    one = reader()
    one.prepareForTriggerAvailableNow()
    for _ in range(4):
        channel.basic_get(queue)
    assert drained(one, one.initialOffset()) == [[4, 5, 6, 7, 8, 9]]


@pytest.mark.parametrize("answer", [1, 2])
def test_available_now_takes_messages_that_come_while_the_queue_is_counted(
    reader: Readers, channel: Any, queue: str, monkeypatch: pytest.MonkeyPatch, answer: int
) -> None:
    publish(channel, queue, 0, 10)
    one = reader()
    one.prepareForTriggerAvailableNow()
    held = [channel.basic_get(queue)[0].delivery_tag for _ in range(10)]
    requested: list[int] = []

    def ready(intake: QueueConsumer) -> int:
        requested.append(counted(intake))
        if len(requested) == answer:
            # They are ours before this is over, and none is left in the queue.
            channel.basic_nack(held[-1], multiple=True, requeue=True)
            waiting(channel, queue)
            requested.append(counted(intake))
        return requested[-1]

    counted = QueueConsumer.ready
    monkeypatch.setattr(QueueConsumer, "ready", ready)
    assert drained(one, one.initialOffset()) == [list(range(10))]
    assert requested[:3] == [0, 0, 0]


def test_everything_available_is_at_most_what_may_be_held(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    one = reader(maxOffsetsPerTrigger="6")
    one.prepareForTriggerAvailableNow()
    end = one.latestOffset(one.initialOffset(), ReadAllAvailable())
    assert end["position"] == 6


def test_a_micro_batch_that_was_not_committed_is_read_again_after_a_restart(
    reader: Readers, channel: Any, queue: str, tmp_path: Path
) -> None:
    publish(channel, queue, 0, 10)
    dead = reader(maxOffsetsPerTrigger="5")
    start = dead.initialOffset()
    planned = gathered(dead, start)
    dead.stop()
    alive = reader(maxOffsetsPerTrigger="5")
    assert bodies(alive, start, planned) == [0, 1, 2, 3, 4]
    # At least once: what was not acknowledged comes again, and says so.
    again = gathered(alive, planned)
    found = rows(alive, planned, again)
    assert [int(row["value"]) for row in found] == [0, 1, 2, 3, 4]
    assert all(row["redelivered"] for row in found)
    assert [row["offset"] for row in found] == [5, 6, 7, 8, 9]
    assert [path.name for path in (tmp_path / "spool").iterdir()] == [again["spool"]]


def test_a_planned_micro_batch_whose_spool_is_gone_is_taken_from_the_queue_again(
    reader: Readers, channel: Any, queue: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    publish(channel, queue, 0, 10)
    dead = reader(maxOffsetsPerTrigger="5")
    planned = gathered(dead, dead.initialOffset())
    dead.stop()
    shutil.rmtree(tmp_path / "spool")
    alive = reader()
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        assert alive.partitions(alive.initialOffset(), planned) == []
    assert "planned before are taken from the queue" in caplog.text
    alive.prepareForTriggerAvailableNow()
    assert drained(alive, planned) == [list(range(10))]


def test_a_spool_that_is_removed_under_a_running_query_stops_it_without_a_loss(
    reader: Readers, channel: Any, queue: str, tmp_path: Path
) -> None:
    publish(channel, queue, 0, 10)
    one = reader()
    end = gathered(one, one.initialOffset())
    shutil.rmtree(tmp_path / "spool")
    with pytest.raises(SourceError, match="the spool was removed while the query ran"):
        one.partitions(one.initialOffset(), end)
    one.stop()
    assert waiting(channel, queue) == 10


def test_the_lag_counts_what_comes_while_the_queue_is_asked(
    reader: Readers, channel: Any, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(channel, queue, 0, 5)
    one = reader()
    one.prepareForTriggerAvailableNow()
    one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())

    def ready(intake: QueueConsumer) -> int:
        # They are ours before the answer comes, and none is left in the queue.
        publish(channel, queue, 5, 8)
        return counted(intake)

    counted = QueueConsumer.ready
    monkeypatch.setattr(QueueConsumer, "ready", ready)
    lag = one.reportLatestOffset()
    assert lag is not None
    assert lag["position"] == 8


def test_the_lag_is_where_the_queue_ends(reader: Readers, channel: Any, queue: str) -> None:
    one = reader(maxOffsetsPerTrigger="10")
    assert one.reportLatestOffset() is None
    publish(channel, queue, 0, 25)
    gathered(one, one.initialOffset())
    lag = one.reportLatestOffset()
    assert lag is not None
    assert lag["position"] == 25


def test_heartbeats_go_on_while_spark_works(
    reader: Readers, broker_url: str, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 5)
    with relay(pika.URLParameters(broker_url).port) as counting:
        # One is due every five seconds, and twenty without any would end the connection.
        one = reader(url=f"amqp://127.0.0.1:{counting.port}/%2F?heartbeat=10")
        first = gathered(one, one.initialOffset())
        made, sent = counting.made, counting.beats
        assert eventually(lambda: counting.beats >= sent + 2)
        publish(channel, queue, 5, 8)
        second = gathered(one, first)
        assert counting.made == made
        assert not any(row["redelivered"] for row in rows(one, first, second))


def test_large_messages_and_all_properties_arrive_whole(
    reader: Readers, channel: Any, queue: str
) -> None:
    began = time.time()
    large = bytes(range(256)) * 2000
    channel.basic_publish("", queue, b"small")
    properties = pika.BasicProperties(
        content_type="image/png",
        headers={"size": len(large), "tags": ["a", "b"], "nested": {"deep": True}},
        delivery_mode=2,
        priority=3,
        timestamp=1_357_041_600,
        message_id="m-1",
    )
    channel.basic_publish("", queue, large, properties)
    channel.basic_publish("", queue, b"last")
    one = reader(MESSAGE)
    one.prepareForTriggerAvailableNow()
    end = one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())
    found = rows(one, one.initialOffset(), end)
    assert [row["value"] for row in found] == [b"small", large, b"last"]
    row = found[1]
    assert dict(row["headers"]) == {
        "size": str(len(large)),
        "tags": '["a","b"]',
        "nested": '{"deep":true}',
    }
    assert row["properties"]["content_type"] == "image/png"
    assert row["properties"]["priority"] == 3
    assert row["properties"]["timestamp"].timestamp() == 1_357_041_600
    assert (row["routing_key"], row["exchange"], row["queue"]) == (queue, "", queue)
    assert began - 1 <= row["timestamp"].timestamp() <= time.time() + 1


def test_a_missing_queue_is_named(reader: Readers) -> None:
    one = reader(queue="no such queue")
    with pytest.raises(SourceError, match="there is no queue 'no such queue' in the virtual host"):
        one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())
    with pytest.raises(SourceError, match="declare it first"):
        reader(queue="no such queue").prepareForTriggerAvailableNow()


def test_a_queue_that_is_deleted_stops_the_query(reader: Readers, channel: Any, queue: str) -> None:
    one = reader()
    one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())
    channel.queue_delete(queue)
    with pytest.raises(SourceError, match="was deleted while the query read it"):
        gathered(one, one.initialOffset())


def test_a_wrong_password_fails_at_once_and_is_not_shown(reader: Readers, broker_url: str) -> None:
    one = reader(url=broker_url.replace("amqp://", "amqp://guest:hunter2@"))
    with pytest.raises(AuthenticationFailed) as caught:
        one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())
    assert "hunter2" not in str(caught.value)


def test_a_broker_that_is_not_there_is_named_at_once(reader: Readers) -> None:
    one = reader(url="amqp://127.0.0.1:1")
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:1"):
        one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())


def test_a_checkpoint_of_another_source_is_refused(reader: Readers) -> None:
    one = reader()
    with pytest.raises(OffsetError, match="does the checkpoint belong to another query"):
        one.latestOffset({"0": 5}, one.getDefaultReadLimit())


def test_a_lost_connection_is_made_again_and_the_query_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    with running_broker("--port", str(port)) as first:
        url = first.address() + "/%2F"
        fill(url, 0, 5)
        given = PATIENT | PLAIN | {"url": url, "queue": "q", "spoolDir": str(tmp_path)}
        one = QueueSource(given).streamReader(BODIES)
        start = gathered(one, one.initialOffset())
        assert bodies(one, one.initialOffset(), start) == [0, 1, 2, 3, 4]
    with running_broker("--port", str(port)), caplog.at_level(logging.WARNING, "harebell.spark"):
        fill(url, 5, 9)
        end = gathered(one, start)
        found = rows(one, start, end)
        one.stop()
    assert [int(row["value"]) for row in found] == [5, 6, 7, 8]
    assert [row["offset"] for row in found] == [5, 6, 7, 8]
    assert "lost the connection to" in caplog.text


def test_a_connection_that_cannot_be_made_again_stops_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody else may answer there when this broker is gone.
    with running_broker("--port", str(free_port())) as broker:
        url = broker.address() + "/%2F"
        fill(url, 0, 5)
        given = PATIENT | PLAIN | {"url": url, "queue": "q", "spoolDir": str(tmp_path)}
        one = QueueSource(given).streamReader(BODIES)
        start = gathered(one, one.initialOffset())
    monkeypatch.setattr(receiver, "time", Hasty())
    with pytest.raises(SourceError, match="was lost and could not be made again in 300 s"):
        one.latestOffset(start, one.getDefaultReadLimit())


def fill(url: str, first: int, end: int) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_delivery()
    publish(channel, "q", first, end)
    connection.close()
