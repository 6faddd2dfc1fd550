"""The stream reader over leases, without a JVM: every message once, whatever happens between."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pika
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from harebell.client import blocking
from harebell.spark.options.values import OptionError
from harebell.spark.reading.data_loss_policy import DataLoss
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.offsets import OffsetError
from harebell.spark.reading.planning import RangePartition
from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.schema import MESSAGE
from harebell.spark.source import QueueSource
from harebell.wire.v09 import lease as lease_wire
from tests.patience import eventually
from tests.ports import free_port
from tests.relay import relay
from tests.running import RunningBroker
from tests.spark.asking import BODIES, bodies, drained, gathered, publish, rows, waiting
from tests.spark.conftest import PATIENT

Readers = Callable[..., QueueStreamReader]
_CLAIM = lease_wire.CLASS_ID.to_bytes(2) + (20).to_bytes(2)


@pytest.fixture
def reader(broker_url: str, queue: str) -> Iterator[Readers]:
    """Makes readers of the queue, which are stopped afterwards."""
    made: list[QueueStreamReader] = []

    def make(schema: StructType = BODIES, **options: str) -> QueueStreamReader:
        given = {"url": broker_url} | (
            {} if {"queues", "queuePattern"} & set(options) else {"queue": queue}
        )
        made.append(QueueSource(PATIENT | given | options).streamReader(schema))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def test_a_group_that_the_broker_has_forgotten_is_told_apart_from_a_queue_that_is_gone(
    reader: Readers, channel: Any, queue: str, broker_url: str
) -> None:
    publish(channel, queue, 0, 4)
    one = reader()
    start = one.initialOffset()
    end = gathered(one, start)
    with blocking.connect(broker_url) as connection:
        other = connection.channel()
        lease = other.lease_open(queue, end[queue]["group"])
        other.lease_close(queue, end[queue]["group"], lease.epoch, forget=True)
    publish(channel, queue, 4, 8)
    for ask in (
        lambda: one.latestOffset(end, one.getDefaultReadLimit()),
        lambda: rows(one, start, end),
    ):
        with pytest.raises(SourceError) as caught:
            ask()
        assert f"group {end[queue]['group']!r}" in str(caught.value), str(caught.value)
        assert "declare it first" not in str(caught.value)
        assert "was deleted while" not in str(caught.value)


def test_a_query_begins_at_the_same_offset_however_often_it_is_asked(
    reader: Readers, queue: str
) -> None:
    one = reader()
    start = one.initialOffset()
    assert one.initialOffset() == start
    assert list(start) == [queue]
    assert list(start[queue]) == ["generation", "group", "claim"]
    assert start[queue]["claim"] == 0


def test_a_group_begins_with_the_prefix_that_the_broker_shows(reader: Readers, queue: str) -> None:
    start = reader(groupIdPrefix="etl").initialOffset()
    assert start[queue]["group"].startswith("etl-")


def test_a_micro_batch_waits_for_enough_messages_and_acknowledges_meanwhile(
    reader: Readers, broker_url: str, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 8)
    one = reader(longPollMs="0", minOffsetsPerTrigger="8")
    start = one.initialOffset()
    end = gathered(one, start)
    assert bodies(one, start, end) == list(range(8))
    publish(channel, queue, 8, 15)
    assert one.latestOffset(end, one.getDefaultReadLimit()) == end
    with blocking.connect(broker_url) as connection:
        assert connection.channel().span(queue).messages == 7
    publish(channel, queue, 15, 16)
    assert bodies(one, end, gathered(one, end)) == list(range(8, 16))


def test_claims_of_a_process_that_died_do_not_wait(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 3)
    dead = reader()
    start = dead.initialOffset()
    planned = gathered(dead, start)
    dead.stop()
    alive = reader(longPollMs="0", minOffsetsPerTrigger="8")
    assert gathered(alive, start) == planned


def test_messages_come_in_order_with_their_positions(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 100)
    one = reader()
    start = one.initialOffset()
    end = gathered(one, start)
    found = rows(one, start, end)
    assert [int(row["value"]) for row in found] == list(range(100))
    positions = [row["offset"] for row in found]
    assert positions == sorted(set(positions))
    assert not any(row["redelivered"] for row in found)


def test_all_columns_are_as_a_message_has_them(reader: Readers, channel: Any, queue: str) -> None:
    properties = pika.BasicProperties(
        content_type="text/plain", headers={"n": 7, "t": {"deep": True}}, message_id="m", priority=4
    )
    channel.basic_publish("", queue, b"one", properties)
    schema = StructType([*MESSAGE.fields, StructField("headers_json", StringType())])
    one = reader(schema)
    start = one.initialOffset()
    (row,) = rows(one, start, gathered(one, start))
    assert (row["value"], row["routing_key"], row["exchange"]) == (b"one", queue, "")
    assert (row["queue"], row["delivery_count"], row["redelivered"]) == (queue, 0, False)
    assert dict(row["headers"]) == {"n": "7", "t": '{"deep":true}'}
    assert row["properties"]["message_id"] == "m"
    assert row["properties"]["priority"] == 4
    assert row["headers_json"] == '{"n":7,"t":{"deep":true}}'


def test_a_micro_batch_is_no_larger_than_asked_for(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 25)
    one = reader(maxOffsetsPerTrigger="10")
    one.prepareForTriggerAvailableNow()
    assert [len(batch) for batch in drained(one, one.initialOffset())] == [10, 10, 5]


def test_a_micro_batch_has_no_more_octets_than_asked_for(
    reader: Readers, channel: Any, queue: str
) -> None:
    for _ in range(10):
        channel.basic_publish("", queue, bytes(100_000))
    one = reader(maxBytesPerTrigger="350000")
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    sizes = []
    while (end := one.latestOffset(start, one.getDefaultReadLimit())) != start:
        sizes.append(len(rows(one, start, end)))
        start = end
    assert sum(sizes) == 10
    assert max(sizes) <= 4


def test_nothing_is_settled_before_spark_has_committed_it(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    one = reader(maxOffsetsPerTrigger="5", leaseTimeout="1s")
    start = one.initialOffset()
    first = gathered(one, start)
    assert bodies(one, start, first) == [0, 1, 2, 3, 4]
    one.commit(first)
    assert waiting(channel, queue) == 5
    one.stop()
    assert eventually(lambda: waiting(channel, queue) == 10)


def test_asking_for_what_comes_after_settles_what_came_before(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    one = reader(maxOffsetsPerTrigger="5", leaseTimeout="1s")
    start = one.initialOffset()
    first = gathered(one, start)
    second = gathered(one, first)
    assert bodies(one, first, second) == [5, 6, 7, 8, 9]
    one.stop()
    # The second claim goes back, the first one never.
    assert eventually(lambda: waiting(channel, queue) == 5)
    assert channel.basic_get(queue, auto_ack=True)[2] == b"5"


def test_available_now_ends_with_what_was_there(reader: Readers, channel: Any, queue: str) -> None:
    publish(channel, queue, 0, 20)
    one = reader(maxOffsetsPerTrigger="8")
    one.prepareForTriggerAvailableNow()
    publish(channel, queue, 20, 30)
    batches = drained(one, one.initialOffset())
    assert [n for batch in batches for n in batch] == list(range(20))
    assert waiting(channel, queue) == 10


def test_available_now_on_an_empty_queue_ends_at_once(reader: Readers) -> None:
    one = reader()
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    assert one.latestOffset(start, one.getDefaultReadLimit()) is start


def test_an_idle_query_answers_with_the_same_offset(reader: Readers) -> None:
    one = reader(longPollMs="10")
    start = one.initialOffset()
    assert one.latestOffset(start, one.getDefaultReadLimit()) is start


def test_a_micro_batch_that_was_not_committed_is_the_same_after_a_restart(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    dead = reader(maxOffsetsPerTrigger="5")
    start = dead.initialOffset()
    planned = gathered(dead, start)
    before = rows(dead, start, planned)
    dead.stop()
    alive = reader(maxOffsetsPerTrigger="5")
    # Spark plans what it has written down before it asks for anything else.
    assert rows(alive, start, planned) == before
    following = gathered(alive, planned)
    assert bodies(alive, planned, following) == [5, 6, 7, 8, 9]
    assert waiting(channel, queue) == 0


def test_a_claim_that_spark_never_heard_of_is_found_again(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    dead = reader(maxOffsetsPerTrigger="5")
    start = dead.initialOffset()
    planned = gathered(dead, start)
    dead.stop()
    alive = reader(maxOffsetsPerTrigger="5")
    assert alive.latestOffset(start, alive.getDefaultReadLimit()) == planned
    assert bodies(alive, start, planned) == [0, 1, 2, 3, 4]


def test_a_micro_batch_whose_claim_was_committed_is_empty(
    reader: Readers, channel: Any, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Spark's last commit file is gone: the sink has the rows, and knows the batch.
    publish(channel, queue, 0, 5)
    dead = reader()
    start = dead.initialOffset()
    planned = gathered(dead, start)
    dead.prepareForTriggerAvailableNow()
    assert dead.latestOffset(planned, dead.getDefaultReadLimit()) is planned
    dead.stop()
    alive = reader()
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        assert alive.partitions(start, planned) == []
    assert "the sink has their rows" in caplog.text
    publish(channel, queue, 5, 8)
    assert bodies(alive, planned, gathered(alive, planned)) == [5, 6, 7]


def test_a_query_that_was_taken_over_is_told_so(reader: Readers, channel: Any, queue: str) -> None:
    publish(channel, queue, 0, 10)
    one = reader(maxOffsetsPerTrigger="5")
    start = one.initialOffset()
    planned = gathered(one, start)
    tasks = one.partitions(start, planned)
    other = reader(maxOffsetsPerTrigger="5")
    assert bodies(other, start, planned) == [0, 1, 2, 3, 4]
    told = "another query has taken over the lease of group .*two queries must not share a checkp"
    with pytest.raises(SourceError, match=told):
        one.latestOffset(planned, one.getDefaultReadLimit())
    with pytest.raises(SourceError, match=told):
        list(one.read(tasks[0]))
    assert bodies(other, planned, gathered(other, planned)) == [5, 6, 7, 8, 9]


def test_a_queue_that_was_declared_again_is_noticed(
    reader: Readers, channel: Any, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    publish(channel, queue, 0, 5)
    dead = reader()
    start = dead.initialOffset()
    planned = gathered(dead, start)
    dead.stop()
    channel.queue_delete(queue)
    channel.queue_declare(queue, durable=True)
    publish(channel, queue, 10, 13)
    told = "was deleted and declared again since the checkpoint.*failOnDataLoss=false reads on"
    with pytest.raises(DataLoss, match=told):
        reader().partitions(start, planned)
    with pytest.raises(DataLoss, match=told):
        reader().latestOffset(planned, reader().getDefaultReadLimit())
    bold = reader(failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        assert bold.partitions(start, planned) == []
        assert bodies(bold, planned, gathered(bold, planned)) == [10, 11, 12]
    assert "was deleted and declared again" in caplog.text


def test_claims_that_were_given_back_are_noticed(
    reader: Readers, channel: Any, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    publish(channel, queue, 0, 5)
    dead = reader(leaseTimeout="1s")
    start = dead.initialOffset()
    planned = gathered(dead, start)
    dead.stop()
    assert eventually(lambda: waiting(channel, queue) == 5)
    told = "claim 1 of group .* went back to the queue"
    with pytest.raises(DataLoss, match=told):
        reader().partitions(start, planned)
    bold = reader(failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        assert bold.partitions(start, planned) == []
        again = gathered(bold, planned)
    (record,) = caplog.records
    said = record.getMessage()
    assert "no query held the group for 86400 s (leaseTimeout)" in said
    assert said.endswith("if the sink has nothing of this one, they come once")
    assert bodies(bold, planned, again) == [0, 1, 2, 3, 4]
    assert all(row["redelivered"] for row in rows(bold, planned, again))


def test_claims_that_spark_has_processed_and_the_broker_gave_back_come_again_and_are_told(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 5)
    dead = reader(leaseTimeout="1s")
    start = dead.initialOffset()
    done = gathered(dead, start)
    dead.stop()
    assert eventually(lambda: waiting(channel, queue) == 5)
    told = "claim 1 of group .*, which Spark has processed, went back .* Their messages come again"
    with pytest.raises(DataLoss, match=told):
        gathered(reader(), done)


def test_large_micro_batches_are_cut_for_the_tasks(
    reader: Readers, broker_url: str, queue: str
) -> None:
    with blocking.connect(broker_url) as connection:
        many = (b"%d" % number for number in range(20_000))
        connection.channel().publish_many(many, routing_key=queue)
    one = reader(minPartitions="5", rowsPerBatch="1000")
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    end = one.latestOffset(start, one.getDefaultReadLimit())
    tasks = one.partitions(start, end)
    assert len(tasks) == 5
    sizes = [sum(batch.num_rows for batch in one.read(task)) for task in tasks]
    assert sum(sizes) == 20_000
    assert min(sizes) > 2_000
    assert bodies(one, start, end) == list(range(20_000))


@pytest.mark.parametrize("way", ["exactly-once", "at-least-once", "peek", "stream"])
def test_few_messages_are_cut_too_when_somebody_asks_for_it(
    reader: Readers, channel: Any, queue: str, way: str
) -> None:
    given = {"delivery": way}
    if way == "stream":
        channel.queue_delete(queue)
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "stream"})
        given = {"startingOffsets": "earliest"}
    publish(channel, queue, 0, 12)
    one = reader(minPartitions="4", **given)
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    end = one.latestOffset(start, one.getDefaultReadLimit())
    tasks = one.partitions(start, end)
    assert [sum(batch.num_rows for batch in one.read(task)) for task in tasks] == [3] * 4
    assert bodies(one, start, end) == list(range(12))


def test_tasks_log_in_but_do_not_show_how(reader: Readers, channel: Any, queue: str) -> None:
    publish(channel, queue, 0, 3)
    one = reader(username="guest", password="guest")
    start = one.initialOffset()
    (task,) = one.partitions(start, gathered(one, start))
    assert isinstance(task, RangePartition)
    assert task.url.password == "guest"
    assert b"password" not in pickle.dumps(one)


def test_several_queues_share_a_micro_batch(reader: Readers, channel: Any, queue: str) -> None:
    other = f"{queue}.other"
    channel.queue_declare(other, durable=True)
    try:
        publish(channel, queue, 0, 30)
        publish(channel, other, 100, 105)
        one = reader(queues=f"{queue},{other}", maxOffsetsPerTrigger="20")
        one.prepareForTriggerAvailableNow()
        start = one.initialOffset()
        assert list(start) == sorted([queue, other])
        batches = drained(one, start)
        assert sorted(n for batch in batches for n in batch) == [*range(30), *range(100, 105)]
        assert [len(batch) for batch in batches] == [15, 20]
    finally:
        channel.queue_delete(other)


def test_a_queue_can_be_one_task(reader: Readers, channel: Any, queue: str) -> None:
    other = f"{queue}.other"
    channel.queue_declare(other, durable=True)
    try:
        publish(channel, queue, 0, 3)
        publish(channel, other, 10, 13)
        one = reader(queues=f"{queue},{other}", partitionBy="queue")
        one.prepareForTriggerAvailableNow()
        start = one.initialOffset()
        end = one.latestOffset(start, one.getDefaultReadLimit())
        tasks = one.partitions(start, end)
        found = [
            [int(row["value"]) for batch in one.read(task) for row in batch.to_pylist()]
            for task in tasks
        ]
        assert sorted(found) == [[0, 1, 2], [10, 11, 12]]
    finally:
        channel.queue_delete(other)


def test_a_leased_queue_is_read_from_its_head(reader: Readers) -> None:
    with pytest.raises(OptionError, match=r"startingOffsets says latest .* always read from its"):
        reader(startingOffsets="latest").initialOffset()
    assert reader(startingOffsets="earliest").initialOffset()


def test_a_checkpoint_of_another_delivery_is_refused(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 3)
    leased = reader().initialOffset()
    with pytest.raises(OffsetError, match="is at-least-once, but the checkpoint was begun"):
        reader(delivery="at-least-once").partitions(leased, leased)
    spooled = {"position": 0, "spool": ""}
    with pytest.raises(OffsetError, match="delivery is exactly-once, but the checkpoint was begun"):
        reader(delivery="exactly-once").latestOffset(spooled, reader().getDefaultReadLimit())


def test_an_old_checkpoint_over_plain_amqp_goes_on(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 3)
    old = {"position": 0, "spool": ""}
    one = reader()
    end = gathered(one, old)
    assert set(end) == {"position", "spool"}
    assert bodies(one, old, end) == [0, 1, 2]


def test_a_checkpoint_of_other_queues_is_refused(reader: Readers, queue: str) -> None:
    start = reader().initialOffset()
    with pytest.raises(OffsetError, match="belongs to a query over"):
        reader(queues=f"{queue},more").latestOffset(start, reader().getDefaultReadLimit())


def test_a_queue_that_has_no_leases_is_refused_with_the_mend(
    reader: Readers, channel: Any, queue: str
) -> None:
    channel.queue_delete(queue)
    channel.queue_declare(queue, durable=True, arguments={"x-single-active-consumer": True})
    with pytest.raises(
        SourceError,
        match=rf"^queue '{queue}' cannot be read exactly once \(.*a single active consumer.*\): "
        "read it with delivery=at-least-once, or look at it with delivery=peek",
    ):
        reader().initialOffset()


def test_a_missing_queue_is_named(reader: Readers) -> None:
    with pytest.raises(SourceError, match="there is no queue 'no such queue' in the virtual host"):
        reader(queue="no such queue").initialOffset()


def test_the_lag_is_what_is_ready(reader: Readers, channel: Any, queue: str) -> None:
    one = reader(maxOffsetsPerTrigger="10")
    assert one.reportLatestOffset() is None
    publish(channel, queue, 0, 25)
    gathered(one, one.initialOffset())
    report = one.reportLatestOffset()
    assert report is not None
    assert report[queue]["ready"] == 15


def test_json_bodies_become_structs(reader: Readers, channel: Any, queue: str) -> None:
    channel.basic_publish("", queue, b'{"id": 7, "name": "x"}')
    channel.basic_publish("", queue, b"bad")
    body = StructType([StructField("id", LongType())])
    schema = StructType([StructField("value", body), StructField("_corrupt_record", StringType())])
    one = reader(schema, bodyFormat="json")
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    end = one.latestOffset(start, one.getDefaultReadLimit())
    assert rows(one, start, end) == [
        {"value": {"id": 7}, "_corrupt_record": None},
        {"value": None, "_corrupt_record": "bad"},
    ]


def test_at_most_once_is_settled_before_spark_sees_it(
    reader: Readers, channel: Any, queue: str, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    publish(channel, queue, 0, 5)
    options = {"delivery": "at-most-once", "spoolDir": str(tmp_path)}
    dead = reader(**options)
    start = dead.initialOffset()
    planned = gathered(dead, start)
    assert bodies(dead, start, planned) == [0, 1, 2, 3, 4]
    dead.stop()
    assert waiting(channel, queue) == 0
    alive = reader(**options)
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        assert alive.partitions(start, planned) == []
    assert "delivery is at-most-once" in caplog.text


def test_a_broker_that_was_killed_has_the_claims_still(tmp_path: Any) -> None:
    flags = ("--data-dir", str(tmp_path / "data"), "--port", str(free_port()))
    broker = RunningBroker(*flags)
    try:
        url = broker.address() + "/%2F"
        with blocking.connect(url) as connection:
            channel = connection.channel()
            channel.declare_queue("q", durable=True)
            channel.publish_many([b"%d" % n for n in range(10)], routing_key="q", delivery_mode=2)
        given = PATIENT | {"url": url, "queue": "q", "maxOffsetsPerTrigger": "5"}
        one = QueueSource(given).streamReader(BODIES)
        start = one.initialOffset()
        planned = gathered(one, start)
        tasks = one.partitions(start, planned)
        broker.process.kill()
        broker.process.wait()
        broker.remove()
        broker = RunningBroker(*flags)
        # Tasks go on by themselves, and so does the query.
        found = [
            int(row["value"]) for task in tasks for b in one.read(task) for row in b.to_pylist()
        ]
        assert found == [0, 1, 2, 3, 4]
        assert bodies(one, planned, gathered(one, planned)) == [5, 6, 7, 8, 9]
        one.stop()
    finally:
        broker.stop()
        broker.remove()


def test_all_queues_that_match_are_read_and_new_ones_join(
    reader: Readers, channel: Any, queue: str
) -> None:
    names = [f"{queue}.eu", f"{queue}.us", f"{queue}.new"]
    try:
        for number, name in enumerate(names[:2]):
            channel.queue_declare(name, durable=True)
            publish(channel, name, number * 10, number * 10 + 3)
        one = reader(queuePattern=rf"{queue}\..*")
        start = one.initialOffset()
        assert list(start) == sorted(names[:2])
        end = one.latestOffset(start, one.getDefaultReadLimit())
        assert sorted(bodies(one, start, end)) == [0, 1, 2, 10, 11, 12]
        channel.queue_declare(names[2], durable=True)
        publish(channel, names[2], 20, 23)
        joined = gathered(one, end)
        assert list(joined) == sorted(names)
        assert bodies(one, end, joined) == [20, 21, 22]
        with pytest.raises(SourceError, match="queuePattern, 'none of them', matches no queue"):
            reader(queuePattern="none of them").initialOffset()
    finally:
        for name in names:
            channel.queue_delete(name)


def test_a_task_that_is_not_let_in_fails_at_once_with_the_sentence_of_the_broker(
    reader: Readers, broker_url: str, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 5)
    one = reader()
    start = one.initialOffset()
    (partition,) = one.partitions(start, gathered(one, start))
    assert isinstance(partition, RangePartition)
    for wrong, said in (
        ({"username": "guest", "password": "changed"}, "ACCESS_REFUSED"),
        ({"vhost": "gone"}, "vhost gone not found"),
    ):
        with relay(partition.url.port) as counted:
            url = replace(partition.url, port=counted.port, **wrong)
            with pytest.raises(SourceError, match=f"is not let in by the broker.*{said}") as caught:
                list(one.read(RangePartition(partition.ranges, url)))
            assert counted.made == 1, "it was not tried again"
        assert "changed" not in str(caught.value)
    assert [int(row["value"]) for row in rows(one, start, gathered(one, start))] == [0, 1, 2, 3, 4]


def test_a_login_that_nobody_answers_is_tried_again_where_the_broker_was_known(
    reader: Readers, broker_url: str, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 5)
    one = reader()
    start = one.initialOffset()
    (partition,) = one.partitions(start, gathered(one, start))
    assert isinstance(partition, RangePartition)
    with relay(partition.url.port) as breaking:
        through = RangePartition(partition.ranges, replace(partition.url, port=breaking.port))
        assert sum(batch.num_rows for batch in one.read(through)) == 5
        breaking.cut_at = b"\0guest\0guest"
        breaking.cut()
        assert sum(batch.num_rows for batch in one.read(through)) == 5
        assert breaking.made == 3, "the login was cut off once"


@pytest.mark.parametrize("limit", ["5", "100"])
def test_a_claim_whose_answer_is_lost_is_read_like_any_other(
    reader: Readers, broker_url: str, channel: Any, queue: str, limit: str
) -> None:
    publish(channel, queue, 0, 10)
    with relay(pika.URLParameters(broker_url).port) as breaking:
        one = reader(url=f"amqp://127.0.0.1:{breaking.port}/%2F", maxOffsetsPerTrigger=limit)
        one.prepareForTriggerAvailableNow()
        start = one.initialOffset()
        breaking.cut_at = _CLAIM
        found = drained(one, start)
        assert breaking.cut_at == b""
        assert [number for batch in found for number in batch] == list(range(10))
        one.stop()
    assert waiting(channel, queue) == 0


def test_any_number_of_messages_may_be_asked_for(reader: Readers, channel: Any, queue: str) -> None:
    publish(channel, queue, 0, 5)
    one = reader(maxOffsetsPerTrigger=str(2**63 - 1), maxBytesPerTrigger="8000000000g")
    start = one.initialOffset()
    assert bodies(one, start, gathered(one, start)) == [0, 1, 2, 3, 4]


# --- claims of many queues ----------------------------------------------------------------------

MANY = 12


@pytest.fixture
def many(channel: Any, queue: str) -> Iterator[list[str]]:
    """Many queues."""
    names = [f"{queue}.{number:02d}" for number in range(MANY)]
    for name in names:
        channel.queue_declare(name, durable=True)
    yield names
    for name in names:
        channel.queue_delete(name)


def fill(channel: Any, many: list[str], first: int) -> list[int]:
    """Ten messages for each queue; their numbers."""
    for at, name in enumerate(many):
        publish(channel, name, first + 10 * at, first + 10 * at + 10)
    return list(range(first, first + 10 * MANY))


def test_claims_of_many_queues_are_asked_for_together(
    reader: Readers, broker_url: str, channel: Any, many: list[str]
) -> None:
    with relay(pika.URLParameters(broker_url).port) as passed:
        one = reader(
            url=f"amqp://127.0.0.1:{passed.port}/%2F",
            queues=",".join(many),
            maxOffsetsPerTrigger="240",
        )
        offset = one.initialOffset()
        for turn in range(3):
            expected = fill(channel, many, turn * 1000)
            passed.watched, passed.seen = _CLAIM, 0
            end = gathered(one, offset)
            # One write; the first claim of a query opens its group, and TCP may part a write.
            assert 0 < passed.seen < MANY // 2
            assert sorted(bodies(one, offset, end)) == expected
            assert all(waiting(channel, name) == 0 for name in many)
            offset = end
        one.stop()


def test_claims_of_many_queues_whose_answers_are_lost_are_read_once(
    reader: Readers, broker_url: str, channel: Any, many: list[str]
) -> None:
    with relay(pika.URLParameters(broker_url).port) as breaking:
        one = reader(url=f"amqp://127.0.0.1:{breaking.port}/%2F", queues=",".join(many))
        offset = one.initialOffset()
        found: list[int] = []
        expected: list[int] = []
        for turn in range(3):
            expected += fill(channel, many, turn * 1000)
            breaking.cut_at = _CLAIM
            while len(found) < len(expected):
                end = gathered(one, offset)
                found += bodies(one, offset, end)
                offset = end
            assert breaking.cut_at == b""
        assert sorted(found) == expected
        one.stop()


def test_the_one_of_many_queues_that_was_taken_over_is_named(
    reader: Readers, channel: Any, many: list[str]
) -> None:
    one = reader(queues=",".join(many))
    start = one.initialOffset()
    fill(channel, many, 0)
    end = gathered(one, start)
    taken = many[MANY // 2]
    thief = reader(queues=taken)
    own = {taken: end[taken]}
    expected = fill(channel, many, 1000)
    gathered(thief, own)
    with pytest.raises(SourceError, match=rf"has taken over the lease .* on queue '{taken}'"):
        one.latestOffset(end, one.getDefaultReadLimit())
    # Nothing that was claimed meanwhile is lost, for whoever goes on from there.
    again = reader(queues=",".join(many))
    again.prepareForTriggerAvailableNow()
    found = [number for batch in drained(again, end) for number in batch]
    assert sorted(found) == expected
