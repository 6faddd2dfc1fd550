"""A super stream that the sink writes and the source reads, each as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harebell.client.blocking import connect
from harebell.spark.writing.super_stream import partition_of
from tests.cli.conftest import done
from tests.running import RunningBroker, running_broker
from tests.spark.conftest import PATIENT


@pytest.fixture(scope="module")
def site() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        yield broker


@pytest.mark.parametrize("delivery", ["exactly-once", "publishing-id", "at-least-once"])
def test_rows_of_a_key_go_to_one_partition_in_order(
    spark: SparkSession, site: RunningBroker, delivery: str
) -> None:
    done(site, "streams", "add-super", f"readings-{delivery}", "--partitions", "3")
    given: dict[str, Any] = PATIENT | {
        "url": f"{site.address()}/%2F",
        "superStream": f"readings-{delivery}",
    }
    rows = spark.range(3_000, numPartitions=1).selectExpr(
        "CAST(id AS STRING) AS value",
        "concat('sensor-', id % 50) AS routing_key",
        "map('sensor', concat('sensor-', id % 50)) AS headers",
    )
    writing = {name: value for name, value in given.items() if name != "fetchTimeout"}
    writing["delivery"] = delivery
    rows.write.format("harebell").options(**writing).mode("append").save()
    found = (
        spark.read.format("harebell")
        .options(**given)
        .load()
        .selectExpr(
            "CAST(CAST(value AS STRING) AS INT) AS number",
            "headers['sensor'] AS sensor",
            "queue",
            "routing_key",
            "offset",
        )
        .orderBy("queue", "offset")
        .collect()
    )
    assert sorted(row["number"] for row in found) == list(range(3_000))
    last: dict[str, int] = {}
    for row in found:
        number = partition_of(row["sensor"], 3)
        assert row["routing_key"] == str(number)
        assert row["queue"] == f"readings-{delivery}-{number}"
        assert last.get(row["sensor"], -1) < row["number"]
        last[row["sensor"]] = row["number"]
    assert len({row["queue"] for row in found}) == 3


def test_an_exchange_that_is_no_super_stream_is_named(
    spark: SparkSession, site: RunningBroker
) -> None:
    frame = spark.range(3).selectExpr("CAST(id AS STRING) AS value", "'k' AS routing_key")
    writer = frame.write.format("harebell").option("url", f"{site.address()}/%2F").mode("append")
    with pytest.raises(PySparkException, match="'few', is no super stream: there is no queue 'few"):
        writer.option("superStream", "few").save()
    with connect(f"{site.address()}/%2F") as connection:
        for number in (0, 2):
            connection.channel().declare_queue(
                f"holed-{number}", durable=True, arguments={"x-queue-type": "stream"}
            )
    with pytest.raises(PySparkException, match="has the partition 'holed-2' and no 'holed-1'"):
        writer.option("superStream", "holed").save()
