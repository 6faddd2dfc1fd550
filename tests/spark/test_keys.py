"""Order within a key: each key in one partition, from hashed queues and from ordering keys."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pika
import pytest
from pyspark.sql import SparkSession

from harebell.spark.schema import message_schema
from harebell.spark.source import QueueSource
from tests.spark.asking import waiting
from tests.spark.conftest import PATIENT

pytestmark = pytest.mark.timeout(1_200)

KEYS = 12
EACH = 60
QUEUES = [f"keys.{number}" for number in range(3)]


@pytest.fixture
def hashed(channel: Any) -> Iterator[str]:
    """An exchange that hashes routing keys over three queues."""
    channel.exchange_declare("keys", "x-consistent-hash")
    for queue in QUEUES:
        channel.queue_declare(queue, durable=True)
        channel.queue_bind(queue, "keys", "10")
    yield "keys"
    for queue in QUEUES:
        channel.queue_delete(queue)
    channel.exchange_delete("keys")


def partitions(url: str, **options: str) -> list[list[tuple[str, str, int]]]:
    """Queue, key and number of each row that a micro-batch reads, by partition."""
    given = PATIENT | {"url": url, "minPartitions": "4", "includeHeaders": "false"} | options
    reader = QueueSource(given).streamReader(message_schema(headers=False))
    # So that one answer has all that is there, however slowly it comes.
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    task = pickle.loads(pickle.dumps(reader))
    found = [
        [
            (row["queue"], row["properties"]["type"], int(row["value"]))
            for batch in task.read(partition)
            for row in batch.to_pylist()
        ]
        for partition in reader.partitions(start, end)
    ]
    reader.stop()
    return found


def publish_in_turns(channel: Any, exchange: str, queue: str | None) -> None:
    """Numbers from 0 on for every key, the keys in turns."""
    for number in range(EACH):
        for key in range(KEYS):
            properties = pika.BasicProperties(
                type=f"k{key}", headers={"key": f"k{key}"}, delivery_mode=2
            )
            channel.basic_publish(exchange, queue or f"k{key}", b"%d" % number, properties)


def assert_keys_are_kept(found: list[list[tuple[str, str, int]]], keys: int = KEYS) -> None:
    """Every key is in one partition, whole and in its order."""
    homes: dict[str, int] = {}
    for at, partition in enumerate(found):
        for key in {key for _, key, _ in partition}:
            assert homes.setdefault(key, at) == at, f"{key} is in two partitions"
            assert [n for _, one, n in partition if one == key] == list(range(EACH))
    assert len(homes) == keys


@pytest.mark.parametrize(
    "which", [{"queues": ",".join(QUEUES)}, {"queuePattern": r"keys\.\d"}], ids=["named", "pattern"]
)
def test_keys_that_are_hashed_over_queues_are_read_in_order_by_a_task_per_queue(
    broker_url: str, channel: Any, hashed: str, which: dict[str, str]
) -> None:
    publish_in_turns(channel, hashed, None)
    found = partitions(broker_url, partitionBy="queue", **which)
    assert 1 < len(found) <= len(QUEUES)
    assert all(len({queue for queue, _, _ in partition}) == 1 for partition in found)
    assert_keys_are_kept(found)


@pytest.fixture
def grouped(channel: Any) -> Iterator[str]:
    """A queue with an ordering key."""
    channel.queue_declare("keys.grouped", durable=True, arguments={"x-group-key": "key"})
    yield "keys.grouped"
    channel.queue_delete("keys.grouped")


def test_a_queue_with_an_ordering_key_is_looked_at_in_order_by_one_task(
    broker_url: str, channel: Any, grouped: str
) -> None:
    publish_in_turns(channel, "", grouped)
    (rows,) = partitions(broker_url, partitionBy="queue", queue=grouped, delivery="peek")
    assert [number for _, _, number in rows] == [n for n in range(EACH) for _ in range(KEYS)]
    assert_keys_are_kept([rows])


def test_a_queue_with_an_ordering_key_is_read_exactly_once_and_in_order_by_one_task(
    broker_url: str, channel: Any, grouped: str
) -> None:
    publish_in_turns(channel, "", grouped)
    (rows,) = partitions(broker_url, partitionBy="queue", queue=grouped)
    assert len(rows) == KEYS * EACH
    assert_keys_are_kept([rows])
    assert waiting(channel, grouped) == 0


@pytest.mark.parametrize("delivery", ["exactly-once", "peek"])
@pytest.mark.parametrize("key", ["headers.key", "properties.type"])
def test_tasks_share_the_keys_of_a_queue_and_keep_the_order_of_each(
    broker_url: str, channel: Any, grouped: str, key: str, delivery: str
) -> None:
    publish_in_turns(channel, "", grouped)
    found = partitions(
        broker_url, partitionBy="key", orderingKey=key, queue=grouped, delivery=delivery
    )
    assert len(found) == 4
    assert all(rows for rows in found[:2])
    assert_keys_are_kept(found)


def test_tasks_share_the_keys_of_hashed_queues_and_a_batch_read_too(
    spark: SparkSession, broker_url: str, channel: Any, hashed: str
) -> None:
    publish_in_turns(channel, hashed, None)
    given = {"queues": ",".join(QUEUES), "partitionBy": "key", "orderingKey": "routing_key"}
    frame = spark.read.format("harebell").options(**PATIENT, url=broker_url, **given)
    frame = frame.option("minPartitions", "3").schema("value BINARY")
    assert frame.load().rdd.getNumPartitions() == 3
    values = sorted(int(row["value"]) for row in frame.load().collect())
    assert values == sorted(number for number in range(EACH) for _ in range(KEYS))
    assert_keys_are_kept(partitions(broker_url, **given))


def test_micro_batches_go_on_with_each_key_and_leave_those_that_a_consumer_holds(
    broker_url: str, channel: Any, grouped: str
) -> None:
    publish_in_turns(channel, "", grouped)
    tag = channel.basic_get(grouped)[0].delivery_tag
    options = {"queue": grouped, "url": broker_url, "partitionBy": "queue", "minPartitions": "4"}
    options |= PATIENT | {"includeHeaders": "false", "maxOffsetsPerTrigger": "100"}
    reader = QueueSource(options).streamReader(message_schema(headers=False))

    def read(start: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, int]]]:
        """Micro-batches until there is nothing more, as (key, number)."""
        found = []
        while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
            reader.commit(start)
            (partition,) = reader.partitions(start, end)
            rows = [row for batch in reader.read(partition) for row in batch.to_pylist()]
            assert len(rows) <= 100
            found += [(row["properties"]["type"], int(row["value"])) for row in rows]
            start = end
        return start, found

    start, rows = read(reader.initialOffset())
    assert_keys_are_kept([[(grouped, key, n) for key, n in rows]], KEYS - 1)
    assert "k0" not in {key for key, _ in rows}
    channel.basic_nack(tag)
    waiting(channel, grouped)  # the broker has read it when this is answered
    start, rows = read(start)
    assert rows == [("k0", number) for number in range(EACH)]
    reader.stop()


def test_a_queue_with_an_ordering_key_is_read_at_least_once(
    broker_url: str, channel: Any, grouped: str
) -> None:
    publish_in_turns(channel, "", grouped)
    found = partitions(broker_url, queue=grouped, delivery="at-least-once")
    rows = sorted((key, number) for partition in found for _, key, number in partition)
    assert rows == sorted((f"k{key}", number) for key in range(KEYS) for number in range(EACH))
