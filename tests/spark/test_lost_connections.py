"""Tasks whose connection is lost get another one and go on; what is promised stays true."""

from __future__ import annotations

import pickle
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pyarrow as pa
import pytest

from harebell.spark.schema import message_schema
from harebell.spark.source import QueueSource
from harebell.spark.writing import staged
from harebell.spark.writing.write_target import SinkError
from harebell.wire.v09 import stage as stage_wire
from tests.ports import free_port
from tests.relay import Relay, relay
from tests.running import RunningBroker
from tests.spark.tasks import Query
from tests.spark.test_writer import TEXTS, taken, texts

pytestmark = pytest.mark.timeout(1_200)

PATIENCE = {"reconnectTimeout": "300s", "confirmTimeout": "300s"}
_COMMIT = stage_wire.CLASS_ID.to_bytes(2) + stage_wire.COMMIT_ID.to_bytes(2)


@pytest.fixture
def broken(broker_url: str) -> Iterator[Relay]:
    """A relay to the broker."""
    with relay(pika.URLParameters(broker_url).port) as made:
        yield made


def writing(port: int, **more: str) -> Query:
    """A query that writes through a port; its batches are not the first, so it is known there."""
    url = f"amqp://guest:guest@127.0.0.1:{port}/%2F"
    return Query({"url": url, "exchange": ""} | PATIENCE | more, TEXTS, str(uuid.uuid4()))


def breaking(broken: Relay, queue: str) -> Iterator[pa.RecordBatch]:
    """Batches of 3,000 rows; the connection is lost while the broker's answers are."""
    yield from texts(queue, 0, 1_000)
    broken.deafen()
    yield from texts(queue, 1_000, 2_000)
    broken.cut()
    yield from texts(queue, 2_000, 2_500)
    broken.cut()
    yield from texts(queue, 2_500, 3_000)


def numbers(channel: Any, queue: str) -> list[int]:
    return sorted(int(body) for _, _, body in taken(channel, queue))


def test_unconfirmed_messages_are_published_again(broken: Relay, channel: Any, queue: str) -> None:
    query = writing(broken.port, delivery="at-least-once", maxInFlight="3000")
    (done,) = query.run(1, breaking(broken, queue))
    assert (done.rows, done.unroutable, done.refused) == (3_000, 0, 0)
    assert broken.made >= 2
    found = numbers(channel, queue)
    assert sorted(set(found)) == list(range(3_000))
    # Only what was in flight when a connection was lost can be there twice.
    assert len(found) <= 2_000 + 2_500 + 3_000


def test_rows_with_publishing_ids_are_there_once_though_the_connection_was_lost(
    broken: Relay, channel: Any, queue: str
) -> None:
    query = writing(broken.port, delivery="publishing-id", maxInFlight="3000")
    (done,) = query.run(1, breaking(broken, queue))
    assert done.rows == 3_000
    assert broken.made >= 2
    assert numbers(channel, queue) == list(range(3_000))


def test_rows_that_came_back_before_the_loss_still_reach_the_dead_letter_exchange(
    broken: Relay, channel: Any, queue: str
) -> None:
    channel.exchange_declare("lost.dead", "fanout")
    channel.queue_bind(queue, "lost.dead")
    # Room for the rows and for their dead letters: a full window waits for answers, which nobody
    # hears while the relay is deaf.
    query = writing(
        broken.port, delivery="at-least-once", maxInFlight="9000", deadLetter="lost.dead"
    )
    (done,) = query.run(1, breaking(broken, "nowhere"))
    assert done.rows == 3_000
    assert done.unroutable == done.dead_lettered >= 3_000
    assert sorted(set(numbers(channel, queue))) == list(range(3_000))
    channel.exchange_delete("lost.dead")


def test_staged_rows_are_published_once_though_the_connection_was_lost(
    broken: Relay, channel: Any, queue: str
) -> None:
    query = writing(broken.port)
    done = query.write(1, 0, breaking(broken, queue))
    assert (done.mode, done.rows) == ("exactly-once", 3_000)
    assert broken.made >= 2
    query.commit(1, done)
    assert numbers(channel, queue) == list(range(3_000))


def test_a_commit_whose_answer_is_lost_is_asked_again_and_published_once(
    broken: Relay, channel: Any, queue: str
) -> None:
    query = writing(broken.port)
    done = query.write(1, 0, texts(queue, 0, 100))
    broken.cut_at = _COMMIT
    before = broken.made
    query.commit(1, done)
    assert broken.made == before + 2
    assert broken.cut_at == b""
    assert numbers(channel, queue) == list(range(100))


class Restarted:
    """A broker that is killed and started again at the same place.

    Args:
        directory: for its data.
    """

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self._directory = directory
        self._flags = ("--port", str(self.port), "--data-dir", str(directory / "data"))
        self._broker = RunningBroker(*self._flags)

    def again(self, *, lose_stages: bool = False) -> None:
        """Kill it and start it again, as after a power loss even without what was staged."""
        self._broker.process.kill()
        self._broker.process.wait()
        if lose_stages:
            shutil.rmtree(self._directory / "data" / "stages")
        self._broker = RunningBroker(*self._flags)

    def stop(self) -> None:
        """The test is over."""
        self._broker.stop()


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[Restarted]:
    broker = Restarted(tmp_path)
    try:
        yield broker
    finally:
        broker.stop()


@pytest.fixture
def durable(restarted: Restarted) -> tuple[Restarted, str]:
    """A broker that can be killed, with a durable queue."""
    parameters = pika.ConnectionParameters("127.0.0.1", restarted.port)
    connection = pika.BlockingConnection(parameters)
    connection.channel().queue_declare("lasting", durable=True)
    connection.close()
    return restarted, "lasting"


def found_in(broker: Restarted, queue: str) -> list[int]:
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port))
    found = numbers(connection.channel(), queue)
    connection.close()
    return found


@pytest.mark.parametrize("delivery", ["exactly-once", "publishing-id"])
def test_a_broker_that_is_killed_under_a_task_gets_all_rows_once(
    durable: tuple[Restarted, str], delivery: str
) -> None:
    broker, queue = durable

    def batches() -> Iterator[pa.RecordBatch]:
        yield from texts(queue, 0, 2_000, 100)
        broker.again()
        yield from texts(queue, 2_000, 2_100)

    (done,) = writing(broker.port, delivery=delivery).run(1, batches())
    assert (done.mode, done.rows) == (delivery, 2_100)
    assert found_in(broker, queue) == list(range(2_100))


def test_a_task_that_has_not_kept_what_the_broker_lost_says_so(
    durable: tuple[Restarted, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged, "SPARK_KEPT_BYTES", 0)
    broker, queue = durable

    def batches() -> Iterator[pa.RecordBatch]:
        yield from texts(queue, 0, 2_000, 100)
        broker.again(lose_stages=True)
        yield from texts(queue, 2_000, 2_100)

    query = writing(broker.port)
    with pytest.raises(SinkError, match=r"has lost what was staged of part 0 of batch 1, as after"):
        query.write(1, 0, batches())
    # The query is started again, and finds nothing of it.
    query.run(1, texts(queue, 0, 50))
    assert found_in(broker, queue) == list(range(50))


def test_a_broker_that_is_killed_between_tasks_and_commit_publishes_all_rows_once(
    durable: tuple[Restarted, str],
) -> None:
    broker, queue = durable
    query = writing(broker.port)
    done = [query.write(1, part, texts(queue, part * 100, part * 100 + 100)) for part in range(2)]
    broker.again()
    query.commit(1, *done)
    broker.again()
    query.commit(1, *done)
    assert found_in(broker, queue) == list(range(200))


def test_a_commit_says_that_a_power_loss_took_what_was_staged(
    durable: tuple[Restarted, str],
) -> None:
    broker, queue = durable
    query = writing(broker.port)
    done = query.write(1, 0, texts(queue, 0, 100))
    broker.again(lose_stages=True)
    with pytest.raises(SinkError, match=r"0 of 100 rows of its part 0 .* start the query again"):
        query.commit(1, done)
    query.run(1, texts(queue, 0, 50))
    assert found_in(broker, queue) == list(range(50))


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_broker_that_does_not_come_back_in_time_fails_the_task(
    broken: Relay, queue: str, delivery: str
) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from texts(queue, 0, 100)
        broken.close()
        yield from texts(queue, 100, 200)

    query = writing(broken.port, delivery=delivery, reconnectTimeout="600ms")
    with pytest.raises(
        SinkError, match=r"^the connection to 127\..* was lost and could not be made again in 0\.6 "
    ):
        query.write(1, 0, batches())


def test_a_task_that_may_not_reconnect_fails_at_once(broken: Relay, queue: str) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from texts(queue, 0, 100)
        broken.cut()
        yield from texts(queue, 100, 200)

    query = writing(broken.port, reconnectTimeout="0")
    with pytest.raises(SinkError, match=r"^rows could not be written to 127\.0\.0\.1:\d+: "):
        query.write(1, 0, batches())
    assert broken.made == 1


@pytest.mark.parametrize("kind", ["classic", "stream"])
def test_a_reading_task_goes_on_at_the_row_where_the_connection_was_lost(
    broken: Relay, channel: Any, queue: str, kind: str
) -> None:
    channel.queue_delete(queue)
    channel.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})
    for number in range(500):
        channel.basic_publish("", queue, b"%d" % number)
    given = {
        "url": f"amqp://guest:guest@127.0.0.1:{broken.port}/%2F",
        "queue": queue,
        "rowsPerBatch": "10",
        "minPartitions": "1",
        "fetchTimeout": "300s",
    }
    if kind == "stream":
        given["startingOffsets"] = "earliest"
    reader = QueueSource(given).streamReader(message_schema())
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    task = pickle.loads(pickle.dumps(reader))
    found: list[int] = []
    before = broken.made
    for partition in reader.partitions(start, end):
        for batch in task.read(partition):
            found += [int(body) for body in batch.column(0).to_pylist()]
            if len(found) in (100, 300):
                broken.cut()
    assert found == list(range(500))
    assert broken.made > before
    reader.stop()
