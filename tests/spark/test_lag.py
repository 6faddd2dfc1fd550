"""The listener that reports how far queries are behind, in a running query."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from harebell.spark.lag import LagListener
from tests.patience import SECONDS
from tests.spark.asking import publish
from tests.spark.conftest import PATIENT


def test_a_listener_reports_the_metrics_of_kafka(
    spark: SparkSession, broker_url: str, channel: Any, tmp_path: Path
) -> None:
    channel.queue_declare("behind", durable=True, arguments={"x-queue-type": "stream"})
    publish(channel, "behind", 0, 250)
    found: list[tuple[str, int, dict[str, str]]] = []
    listener = LagListener(lambda *metrics: found.append(metrics))
    spark.streams.addListener(listener)
    given = PATIENT | {"url": broker_url, "queue": "behind", "startingOffsets": "earliest"}
    try:
        query = (
            spark.readStream.format("harebell")
            .options(**given, maxOffsetsPerTrigger="100")
            .load()
            .writeStream.format("noop")
            .queryName("behind")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        until = time.monotonic() + SECONDS
        while len(found) < 3 and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        spark.streams.removeListener(listener)
        channel.queue_delete("behind")
    assert [(name, source) for name, source, _ in found] == [("behind", 0)] * 3
    assert [metrics["maxOffsetsBehindLatest"] for _, _, metrics in found] == ["150", "50", "0"]
    assert all(int(m["estimatedTotalBytesBehindLatest"]) >= 0 for _, _, m in found)
    assert query.lastProgress["sources"][0]["metrics"] == {}
