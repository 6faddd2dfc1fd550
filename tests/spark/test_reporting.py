"""Queries report to the broker how far they are, and go on if it is away."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pika
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from harebell.pipeline.checking import check
from harebell.pipeline.hosting import host
from harebell.pipeline.views import View
from harebell.spark import reporting
from harebell.spark.reporting import QueryReporter, ReportListener
from tests.patience import SECONDS
from tests.ports import free_port
from tests.running import running_broker
from tests.spark.asking import publish
from tests.spark.conftest import PATIENT
from tests.unit.management.http.asking import Api


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No report is dropped because the broker is slow."""
    monkeypatch.setattr(reporting, "_CALL_SECONDS", SECONDS)


def until(found: Any) -> Any:
    end = time.monotonic() + SECONDS
    while not (value := found()):
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.1)
    return value


def test_a_query_of_spark_is_seen_over_http_with_its_lag_and_its_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        api, url = Api(port), broker.address() + "/%2F"
        with pika.BlockingConnection(pika.URLParameters(f"{url}?heartbeat=0")) as link:
            channel = link.channel()
            channel.confirm_delivery()
            channel.queue_declare("behind", durable=True, arguments={"x-queue-type": "stream"})
            publish(channel, "behind", 0, 250)
        listener = ReportListener(url, "test")
        spark.streams.addListener(listener)
        given = PATIENT | {"url": url, "queue": "behind", "startingOffsets": "earliest"}
        try:
            query = (
                spark.readStream.format("harebell")
                .options(**given, maxOffsetsPerTrigger="100")
                .load()
                .writeStream.format("noop")
                .queryName("behind")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(processingTime="0 seconds")
                .start()
            )
            (row,) = until(
                lambda: [each for each in api.get("/api/queries") if each["lag_messages"] == 0]
            )
            query.stop()
            (last,) = until(
                lambda: [each for each in api.get("/api/queries") if each["state"] != "running"]
            )
            _fail(spark, given, tmp_path / "failing")
            (failed,) = until(
                lambda: [each for each in api.get("/api/queries") if each["state"] == "failed"]
            )
        finally:
            spark.streams.removeListener(listener)
            listener.close()
    assert (row["name"], row["user"], row["application"]) == ("behind", "guest", "test")
    assert (row["state"], row["stale"], row["batch"]) == ("running", False, 2)
    assert (row["sources"], row["lag_seconds"], row["id"]) == (["behind"], 0.0, str(query.id))
    assert row["rows_per_second"] > 0
    assert (last["name"], last["state"], last["run_id"]) == ("behind", "stopped", str(query.runId))
    assert (failed["name"], failed["error"]) == ("failing", "the disk <b>is</b> full")


def _fail(spark: SparkSession, options: Mapping[str, str], checkpoint: Path) -> None:
    """A query that ends with an error of its own program."""

    def write(rows: DataFrame, batch: int) -> None:
        raise OSError("the disk <b>is</b> full")

    source = spark.readStream.format("harebell").options(**options).load()
    writer = source.writeStream.foreachBatch(write).queryName("failing")
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()


def test_a_broker_that_is_away_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    reporter = QueryReporter(f"amqp://guest:guest@127.0.0.1:{free_port()}/%2F")
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        reporter.put("q", {"batch": 1})
        until(lambda: caplog.records)
        reporter.put("q", {"batch": 2, "state": "stopped"})
        reporter.close()
    (record,) = caplog.records
    assert "gets no reports of queries, which go on" in record.getMessage()
    assert "guest:guest" not in record.getMessage()


def test_a_report_that_is_refused_costs_one_warning_and_the_next_is_taken(
    broker_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = QueryReporter(broker_url)
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        reporter.put("refused", {"bach": 1, "state": "failed"})
        until(lambda: caplog.records)
        reporter.put("q", {"batch": 2, "state": "stopped"})
        reporter.close()
    (record,) = caplog.records
    assert "unknown fact 'bach'" in record.getMessage()


def test_a_pipeline_reports_by_itself_unless_its_file_says_no(
    spark: SparkSession, tmp_path: Path
) -> None:
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        api, url = Api(port), broker.address() + "/%2F"
        with pika.BlockingConnection(pika.URLParameters(f"{url}?heartbeat=0")) as link:
            channel = link.channel()
            channel.confirm_delivery()
            channel.queue_declare("sales", durable=True, arguments={"x-queue-type": "stream"})
            publish(channel, "sales", 0, 20)
        for name, report in (("quiet", "report: false"), ("sales", "")):
            file = tmp_path / f"{name}.yaml"
            file.write_text(
                f"pipeline: {name}\nsource: {{url: '{url}', queue: sales, fetchTimeout: 300s, "
                f"startingOffsets: earliest}}\nsinks: [{{parquet: {name}}}]\n{report}\n"
            )
            view = View(lambda line: None, terminal=False)
            (state,) = host([check(file)], tmp_path / "registry", view, spark=spark)
            assert (state.state, state.rows) == ("ended", 20), state.error
        (row,) = api.get("/api/queries")
    assert (row["name"], row["state"], row["application"]) == (
        "sales",
        "stopped",
        "harebell pipeline",
    )
    assert (row["input_rows"], row["lag_messages"], row["sources"]) == (20, 0, ["sales"])
