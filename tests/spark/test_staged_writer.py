"""The sink exactly once, called as Spark calls it, also when it repeats itself."""

from __future__ import annotations

import pickle
import uuid
from typing import Any

import pyarrow as pa
import pytest

from harebell.client import blocking
from harebell.client.errors import AMQPError
from harebell.spark.options.sink_options import parse_sink
from harebell.spark.source import QueueSource
from harebell.spark.writing import staged
from harebell.spark.writing.sink_schema import message_columns
from harebell.spark.writing.write_target import SinkError, Task, TaskResult, WriteTarget
from tests.cli.conftest import done as harebell
from tests.running import RunningBroker, running_broker
from tests.spark.tasks import Query, as_task, spark_type
from tests.spark.test_writer import TEXTS, taken, texts, waiting

pytestmark = pytest.mark.timeout(1_200)


@pytest.fixture
def query_id() -> str:
    return str(uuid.uuid4())


def query(url: str, query_id: str, run: str = "first", **more: str) -> Query:
    return Query({"url": url, "exchange": "", **more}, TEXTS, query_id, run)


def numbers(channel: Any, queue: str) -> list[int]:
    return sorted(int(body) for _, _, body in taken(channel, queue))


def test_rows_are_there_when_the_driver_has_committed_and_not_before(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    writing = query(broker_url, query_id)
    done = [
        writing.write(0, 0, texts(queue, 0, 20_000)),
        writing.write(0, 1, texts(queue, 20_000, 20_100)),
        writing.write(0, 2, ()),
    ]
    assert [(one.mode, one.rows) for one in done] == [
        ("exactly-once", 20_000),
        ("exactly-once", 100),
        ("exactly-once", 0),
    ]
    assert waiting(channel, queue) == 0
    writing.commit(0, *done)
    assert waiting(channel, queue) == 20_100
    first, properties, body = channel.basic_get(queue, auto_ack=True)
    assert (first.exchange, first.routing_key, body) == ("", queue, b"0")
    assert properties.delivery_mode == 2
    writing.commit(0, *done)
    assert numbers(channel, queue) == list(range(1, 20_100))


def test_record_batches_of_any_size_are_written_and_a_row_that_is_too_large_is_named(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    def rows(count: int, octets: int) -> pa.RecordBatch:
        bodies = [bytes(octets)] * count
        return pa.RecordBatch.from_arrays([pa.array(bodies), [queue] * count], schema=TEXTS)

    writing = query(broker_url, query_id)
    # More than a broker takes at a time, as Spark's batches are.
    done = writing.write(0, 0, [rows(65, 1 << 20), rows(1, 3), rows(3, 12 << 20)])
    writing.commit(0, done)
    assert waiting(channel, queue) == done.rows == 69
    with pytest.raises(SinkError, match="with delivery=exactly-once a row has at most 67108864"):
        writing.write(1, 0, [rows(1, 64 << 20)])


def test_a_batch_that_was_committed_is_not_published_again_by_a_later_run(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    query(broker_url, query_id).run(0, texts(queue, 0, 10))
    # Spark had not written its commit log: the same batch comes again, in another run.
    again = query(broker_url, query_id, "second")
    again.run(0, texts(queue, 0, 4), texts(queue, 4, 10))
    again.run(1, texts(queue, 10, 15))
    assert numbers(channel, queue) == list(range(15))


def test_a_batch_that_is_not_the_last_is_not_taken_for_a_repeated_one(
    broker_url: str, channel: Any, queue: str, query_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    writing = query(broker_url, query_id)
    for batch in range(3):
        writing.run(batch, texts(queue, batch, batch + 1))
    older = query(broker_url, query_id, "second")
    older.run(2, texts(queue, 2, 3))
    with pytest.raises(SinkError, match="put back to an older state"):
        older.run(1, texts(queue, 7, 9))
    assert not caplog.text
    older.run(5, texts(queue, 5, 6))
    assert "the rows of 2 batches" in caplog.text
    assert numbers(channel, queue) == [0, 1, 2, 5]


def _of(broker: RunningBroker, user: str) -> str:
    return f"amqp://{user}:secret@127.0.0.1:{broker.port}/%2F"


@pytest.mark.parametrize("delivery", ["exactly-once", "publishing-id"])
def test_a_batch_that_another_user_repeats_is_refused_until_the_query_is_handed_over(
    query_id: str, delivery: str
) -> None:
    with running_broker() as broker, blocking.connect(broker.url) as connection:
        counting = connection.channel()
        counting.declare_queue("rows", durable=True)
        for user in ("old", "new"):
            harebell(broker, "users", "add", user, "secret")
            harebell(broker, "permissions", "set", user, ".*", ".*", ".*")
        old = query(_of(broker, "old"), query_id, delivery=delivery)
        old.run(0, texts("rows", 0, 10), texts("rows", 10, 20))

        def count() -> int:
            return counting.declare_queue("rows", passive=True).message_count

        # The driver died before Spark had written its commit log, and its user was rotated.
        again = query(_of(broker, "new"), query_id, "second", delivery=delivery)
        with pytest.raises((SinkError, AMQPError)) as refused:
            again.run(0, texts("rows", 0, 10), texts("rows", 10, 20))
        assert f"harebell publishers hand-over spark/{query_id}" in str(refused.value)
        assert "--to new" in str(refused.value)
        assert count() == 20
        harebell(broker, "publishers", "hand-over", f"spark/{query_id}", "--to", "new")
        again.run(0, texts("rows", 0, 10), texts("rows", 10, 20))
        again.run(1, texts("rows", 20, 30))
        assert count() == 30
        # The driver of the old user is no longer the query's.
        with pytest.raises((SinkError, AMQPError), match="another user's"):
            old.run(1, texts("rows", 20, 30))
        assert count() == 30


def test_only_the_attempts_that_the_driver_names_count(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    writing = query(broker_url, query_id)
    writing.write(0, 0, texts(queue, 0, 7))
    second = writing.write(0, 0, texts(queue, 0, 10))
    writing.write(0, 0, texts(queue, 0, 3))
    writing.commit(0, second)
    assert numbers(channel, queue) == list(range(10))


def test_a_run_that_was_replaced_can_neither_write_nor_commit(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    old = query(broker_url, query_id)
    done = old.write(0, 0, texts(queue, 0, 10))
    new = query(broker_url, query_id, "second")
    new.run(0, texts(queue, 0, 10))
    sentence = f"another run of the publisher 'spark/{query_id}' has taken over"
    with pytest.raises(SinkError, match=sentence):
        old.commit(0, done)
    with pytest.raises(SinkError, match=sentence):
        old.write(1, 0, texts(queue, 10, 20))
    new.run(1, texts(queue, 10, 12))
    assert numbers(channel, queue) == list(range(12))


def test_nothing_is_published_when_a_row_reaches_no_queue(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    writing = query(broker_url, query_id)
    with pytest.raises(SinkError, match=r"batch 0 was not published, .* Bind a queue, or set dead"):
        writing.run(0, texts(queue, 0, 10), texts("nowhere", 10, 13))
    assert waiting(channel, queue) == 0
    query(broker_url, query_id, "second", mandatory="false").run(
        0, texts(queue, 0, 10), texts("nowhere", 10, 13)
    )
    assert numbers(channel, queue) == list(range(10))


def test_rows_that_reach_no_queue_go_to_the_dead_letter_exchange_in_the_same_step(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    channel.exchange_declare("staged.dead", "fanout")
    channel.queue_bind(queue, "staged.dead")
    query(broker_url, query_id, deadLetter="staged.dead").run(0, texts("nowhere", 0, 10))
    assert numbers(channel, queue) == list(range(10))
    channel.exchange_delete("staged.dead")


def test_nothing_is_published_when_a_row_reaches_no_queue_by_the_dead_letter_exchange_either(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    channel.exchange_declare("staged.nowhere", "direct")
    writing = query(broker_url, query_id, deadLetter="staged.nowhere")
    with pytest.raises(
        SinkError,
        match=r"3 of 13 rows of batch 0 reach no queue, .* by the dead-letter exchange "
        r"'staged.nowhere' either: bind a queue to it",
    ):
        writing.run(0, texts(queue, 0, 10), texts("nowhere", 10, 13))
    assert waiting(channel, queue) == 0
    channel.queue_bind(queue, "staged.nowhere", "nowhere")
    again = query(broker_url, query_id, "second", deadLetter="staged.nowhere")
    again.run(0, texts(queue, 0, 10), texts("nowhere", 10, 13))
    assert numbers(channel, queue) == list(range(13))
    channel.exchange_delete("staged.nowhere")


def test_an_aborted_batch_is_never_published(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    writing = query(broker_url, query_id)
    done = writing.write(0, 0, texts(queue, 0, 10))
    writing.abort(0, done)
    writing.run(0, texts(queue, 0, 5))
    assert numbers(channel, queue) == list(range(5))


def job(url: str, queue: str, first: int, end: int, **options: str) -> None:
    """A batch write of one partition, from writer() to commit()."""
    source = QueueSource({"url": url, "exchange": "", **options})
    made = source.writer(spark_type(pa.struct(list(TEXTS))), False)
    carried: Any = pickle.dumps(made)
    with as_task(0, 1):
        done: TaskResult = pickle.loads(carried).write(texts(queue, first, end))
    pickle.loads(carried).commit([done])


def test_a_batch_write_is_published_once_for_its_application_and_version(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    job(broker_url, queue, 0, 10, txnAppId=query_id, txnVersion="7")
    job(broker_url, queue, 0, 10, txnAppId=query_id, txnVersion="7")
    job(broker_url, queue, 10, 12, txnAppId=query_id, txnVersion="8")
    assert numbers(channel, queue) == list(range(12))


def test_batch_writes_without_a_name_are_each_published(
    broker_url: str, channel: Any, queue: str
) -> None:
    job(broker_url, queue, 0, 3)
    job(broker_url, queue, 0, 3)
    assert numbers(channel, queue) == [0, 0, 1, 1, 2, 2]


def test_rows_with_publishing_ids_that_are_repeated_are_dropped(
    broker_url: str, channel: Any, queue: str, query_id: str
) -> None:
    writing = query(broker_url, query_id, delivery="publishing-id")
    writing.write(0, 0, texts(queue, 0, 40, 30))
    # The task is repeated, and then the whole micro-batch by another run of the query.
    done = writing.write(0, 0, texts(queue, 0, 100, 30))
    assert (done.mode, done.rows) == ("publishing-id", 100)
    writing.commit(0, done)
    again = query(broker_url, query_id, "second", delivery="publishing-id")
    again.run(0, texts(queue, 0, 100, 30), texts(queue, 100, 110))
    again.run(1, texts(queue, 110, 120))
    assert numbers(channel, queue) == list(range(120))


@pytest.mark.parametrize("column", ["headers", "headers_raw"])
def test_rows_with_publishing_ids_may_come_from_a_queue_that_was_written_so(
    broker_url: str, channel: Any, queue: str, query_id: str, column: str
) -> None:
    # Two publishers began at the same number, and both had written into one queue.
    kind = pa.map_(pa.string(), pa.string()) if column == "headers" else pa.binary()
    number = (
        [("x-publishing-id", "0")] if column == "headers" else b"\x0fx-publishing-idl" + bytes(8)
    )
    schema = pa.schema([*TEXTS, (column, kind)])
    values = [pa.array([b"0", b"1"]), pa.array([queue] * 2), pa.array([number] * 2, kind)]
    batch = pa.RecordBatch.from_arrays(values, schema=schema)
    given = {"url": broker_url, "exchange": "", "delivery": "publishing-id"}
    Query(given, schema, query_id).run(0, [batch])
    assert numbers(channel, queue) == [0, 1]


def test_a_task_keeps_no_more_of_what_it_has_staged_than_its_limit(
    broker_url: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 50_000
    monkeypatch.setattr(staged, "SPARK_KEPT_BYTES", limit)
    columns = message_columns(
        spark_type(pa.struct(list(TEXTS))),
        ignore_unknown=False,
        has_routing_key=False,
        has_exchange=True,
    )
    target = WriteTarget(parse_sink({"url": broker_url, "exchange": ""}), columns)
    task = Task("spark/keeps", "run", 0, 0, 0)
    done = TaskResult("exactly-once", task)
    batches = [batch for n in range(40) for batch in texts(queue, n * 100, n * 100 + 100)]
    writer = staged.StagedWriter(target, iter(batches), done)
    with target.connect("test") as connection:
        writer.run(connection)
    assert (writer.progress, done.rows) == (len(batches), 4_000)
    kept = [len(piece.data) for piece in writer._kept]
    assert sum(kept) <= limit < sum(kept) + max(kept)
    staged.abort(target, task)
