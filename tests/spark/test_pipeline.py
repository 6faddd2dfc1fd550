"""Pipelines from their files, on a real broker and a real session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harebell.pipeline.checking import check
from harebell.pipeline.hosting import host
from harebell.pipeline.registry import State, states
from harebell.pipeline.views import View

pytestmark = pytest.mark.timeout(1_200)


class Bench:
    """A folder with a pipeline's file, which can be run.

    Args:
        spark: the session.
        url: the broker.
        queue: the queue that pipelines read.
        folder: for everything.
    """

    def __init__(self, spark: SparkSession, url: str, queue: str, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.variables = {"URL": url, "QUEUE": queue}
        self.said: list[str] = []

    def run(self, text: str) -> State:
        """Run a pipeline to its end."""
        file = self.folder / "pipeline.yaml"
        file.write_text(text)
        pipeline = check(file, self.variables)
        view = View(self.said.append, terminal=False)
        (state,) = host([pipeline], self.folder / "registry", view, spark=self.spark)
        return state

    def rows(self, name: str) -> list[dict[str, Any]]:
        found = self.spark.read.parquet(str(self.folder / name)).collect()
        return [row.asDict(recursive=True) for row in found]


@pytest.fixture
def bench(spark: SparkSession, broker_url: str, queue: str, tmp_path: Path) -> Bench:
    return Bench(spark, broker_url, queue, tmp_path)


def publish(channel: Any, queue: str, bodies: list[bytes]) -> None:
    for body in bodies:
        channel.basic_publish("", queue, body)


def orders(count: int) -> list[bytes]:
    return [
        json.dumps({"id": n, "total": n * 1.5, "day": f"2013-01-0{n % 2 + 1}"}).encode()
        for n in range(count)
    ]


LAKE = """
pipeline: orders
source:
  url: ${URL}
  queue: ${QUEUE}
  fetchTimeout: 300s
  body: {format: json, schema: "id BIGINT, total DOUBLE, day DATE"}
steps:
  - sql: SELECT data.*, routing_key, timestamp FROM source
sinks:
  - parquet: plain
    partitionBy: [day]
  - delta: table
    where: total >= 3
    partitionBy: [day]
    compactEvery: 1
  - console: {}
"""


def test_a_queue_goes_through_sql_into_parquet_and_delta_once(
    bench: Bench, channel: Any, queue: str
) -> None:
    from deltalake import DeltaTable

    publish(channel, queue, orders(10))
    state = bench.run(LAKE)
    assert (state.state, state.rows, state.error) == ("ended", 10, "")
    assert state.written == {"parquet": 10, "delta": 8, "console": 10}
    assert sorted(row["id"] for row in bench.rows("plain")) == list(range(10))
    table = bench.folder / "table"
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == list(range(2, 10))
    # The window between the sinks and Spark's own log: the batch is done again.
    commits = bench.folder / "checkpoints" / "orders" / "commits"
    last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda p: p.name)
    last.unlink()
    publish(channel, queue, orders(12)[10:])
    again = bench.run(LAKE)
    assert again.state == "ended"
    assert sorted(row["id"] for row in bench.rows("plain")) == list(range(12))
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == list(range(2, 12))
    assert [state.name for state in states(bench.folder / "registry")] == ["orders"]
