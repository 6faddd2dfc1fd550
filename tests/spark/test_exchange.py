"""A query over an exchange: the stream that it has for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from pyspark.sql import SparkSession

from harebell.spark.options.values import OptionError
from harebell.spark.reading.data_loss_policy import DataLoss
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.offsets import OffsetError
from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.source import QueueSource
from tests.cli.conftest import done
from tests.patience import eventually
from tests.running import running_broker
from tests.spark.asking import BODIES, bodies
from tests.spark.conftest import PATIENT

EXCHANGE = "shop"


@pytest.fixture
def exchange(channel: Any) -> Iterator[str]:
    channel.exchange_declare(EXCHANGE, "topic", durable=True)
    yield EXCHANGE
    channel.connection.channel().exchange_delete(EXCHANGE)


@pytest.fixture
def reader(broker_url: str, exchange: str) -> Iterator[Callable[..., QueueStreamReader]]:
    made: list[QueueStreamReader] = []

    def make(**options: str) -> QueueStreamReader:
        given = {"url": broker_url, "exchange": exchange, "bindingKeys": "eu.*,us.#"}
        made.append(QueueSource(PATIENT | given | options).streamReader(BODIES))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def published(channel: Any, first: int, end: int, key: str = "eu.order") -> None:
    for number in range(first, end):
        channel.basic_publish(EXCHANGE, key, b"%d" % number)


def rest(reader: QueueStreamReader, start: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    return end, bodies(reader, start, end)


def test_a_query_collects_what_its_keys_select(
    reader: Callable[..., QueueStreamReader], channel: Any
) -> None:
    published(channel, 0, 5)
    one = reader()
    start = one.initialOffset()
    assert start == one.initialOffset()
    published(channel, 5, 8)
    published(channel, 8, 10, "us.west.order")
    published(channel, 10, 12, "asia.order")
    _, found = rest(one, start)
    assert found == [5, 6, 7, 8, 9]


def test_a_restart_goes_on_with_the_same_stream(
    reader: Callable[..., QueueStreamReader], channel: Any
) -> None:
    one = reader(groupIdPrefix="billing")
    start = one.initialOffset()
    (name,) = start
    assert name.startswith("billing-")
    published(channel, 0, 4)
    end, found = rest(one, start)
    assert found == [0, 1, 2, 3]
    one.stop()
    published(channel, 4, 6)
    again = reader(groupIdPrefix="billing", bindingKeys="eu.*,asia.*")
    assert bodies(again, start, end) == [0, 1, 2, 3]
    published(channel, 6, 7, "asia.order")
    assert rest(again, end)[1] == [4, 5, 6]


def test_a_stream_that_a_restart_does_not_need_is_deleted(
    reader: Callable[..., QueueStreamReader], channel: Any
) -> None:
    one = reader()
    start = one.initialOffset()
    published(channel, 0, 3)
    end, _ = rest(one, start)
    one.stop()
    again = reader()
    # Spark does so when the first micro-batch was planned and not committed.
    (needless,) = again.initialOffset()
    assert bodies(again, {needless: start[next(iter(start))]}, end) == [0, 1, 2]
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="no queue"):
        channel.connection.channel().queue_declare(needless, passive=True)


def test_a_group_names_the_stream_for_every_checkpoint(
    reader: Callable[..., QueueStreamReader], channel: Any
) -> None:
    one = reader(group="shop-all")
    start = one.initialOffset()
    assert list(start) == ["shop-all"]
    published(channel, 0, 3)
    one.stop()
    again = reader(group="shop-all")
    assert rest(again, again.initialOffset())[1] == [0, 1, 2]
    with pytest.raises(OptionError, match=r"exists with other options .*x-max-age"):
        reader(group="shop-all", streamMaxAge="1h").initialOffset()
    channel.queue_delete("shop-all")


def test_a_stream_that_is_gone_ends_the_query_or_is_made_again(
    reader: Callable[..., QueueStreamReader], channel: Any
) -> None:
    one = reader()
    start = one.initialOffset()
    one.stop()
    (name,) = start
    channel.queue_delete(name)
    with pytest.raises(DataLoss, match=f"the stream '{name}' of the query is gone"):
        rest(reader(), start)
    lenient = reader(failOnDataLoss="false")
    rest(lenient, start)
    published(channel, 0, 2)
    assert rest(lenient, start)[1] == [0, 1]


def test_the_broker_deletes_a_stream_that_nobody_reads(
    reader: Callable[..., QueueStreamReader], channel: Any
) -> None:
    one = reader(streamExpires="1s", streamMaxBytes="1m")
    (name,) = one.initialOffset()
    one.stop()

    def gone() -> bool:
        # To ask for a queue is to use it, so that it has its time again.
        channel.connection.sleep(3)
        try:
            channel.connection.channel().queue_declare(name, passive=True)
        except pika.exceptions.ChannelClosedByBroker as closed:
            return "no queue" in closed.reply_text
        return False

    assert eventually(gone)


def test_the_checkpoint_of_another_query_is_refused(
    reader: Callable[..., QueueStreamReader],
) -> None:
    start = {name: {"generation": "a", "position": 1} for name in ("one", "two")}
    with pytest.raises(
        OffsetError, match="belongs to a query over one, two, and this one reads ex"
    ):
        rest(reader(), start)


def test_an_exchange_that_is_not_there_is_named(
    reader: Callable[..., QueueStreamReader],
) -> None:
    with pytest.raises(SourceError, match="there is no exchange 'nowhere' in the virtual host '/'"):
        reader(exchange="nowhere").initialOffset()


def test_a_user_without_permission_is_told_which() -> None:
    with running_broker() as broker:
        done(broker, "users", "add", "ann", "secret")
        done(broker, "permissions", "set", "ann", "^$", "^$", ".*")
        url = f"amqp://ann:secret@127.0.0.1:{broker.port}/%2F"
        given = PATIENT | {"url": url, "exchange": "amq.topic", "bindingKeys": "#"}
        one = QueueSource(given).streamReader(BODIES)
        with pytest.raises(
            SourceError, match=r"user 'ann' may not make the private stream 'spark-.*"
        ):
            one.initialOffset()
        one.stop()


def test_a_streaming_query_reads_an_exchange_over_restarts(
    spark: SparkSession, broker_url: str, channel: Any, exchange: str, tmp_path: Path
) -> None:
    given = PATIENT | {"url": broker_url, "exchange": exchange, "bindingKeys": "#"}

    def run() -> None:
        query = (
            spark.readStream.format("harebell")
            .options(**given)
            .load()
            .selectExpr("CAST(CAST(value AS STRING) AS INT) AS number", "routing_key")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "rows"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    published(channel, 0, 500)
    run()
    published(channel, 500, 1000, "us.order")
    run()
    rows = spark.read.parquet(str(tmp_path / "rows"))
    found = rows.groupBy("routing_key").count().orderBy("routing_key").collect()
    assert [tuple(row) for row in found] == [("eu.order", 500), ("us.order", 500)]
    assert rows.select("number").distinct().count() == 1000
