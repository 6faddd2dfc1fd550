"""The Spark driver of the chaos harness: four queries that are started again whenever they end.

    classic queue ─┬─ SQL ── Parquet       stream ─┬─ SQL ── Parquet
                   └─ SQL ── exchange              └─ SQL ── exchange

python chaos_driver.py DIRECTORY

The directory has `plan.json`; it gets one line in `ends` for every query that has ended, and in
`started` the time at which all of them ran. The driver ends when there is a file `stop`, or, where
the plan says so, when everything that is there is processed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harebell.spark.runtime.java import find_java
from harebell.spark.runtime.spark_home_cache import find_cache
from harebell.spark.session import build_session, java_options
from tests.spark.outcome import SQL

_FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOOK_SECONDS = 0.05
_AGAIN_SECONDS = 0.5
_STARTING_SECONDS = 60.0
_STARTING = "Initializing sources"
_LOCAL_DISK = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


@dataclass(frozen=True)
class Flow:
    """One query.

    Args:
        name: of its directory.
        queue: that it reads.
        exchange: that it writes to; None for Parquet.
    """

    name: str
    queue: str
    exchange: str | None


@dataclass(frozen=True)
class Plan:
    """What a driver is to do.

    Args:
        url: of the broker.
        master: where tasks run.
        flows: the queries.
        rows: of a micro-batch at most.
        drain: whether it ends when everything is processed.
    """

    url: str
    master: str
    flows: list[Flow]
    rows: int
    drain: bool = False

    def write(self, directory: Path) -> None:
        """Into the driver's directory."""
        (directory / "plan.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, directory: Path) -> Plan:
        """From there."""
        found: dict[str, Any] = json.loads((directory / "plan.json").read_text())
        return cls(**found | {"flows": [Flow(**flow) for flow in found["flows"]]})


def start(spark: SparkSession, plan: Plan, flow: Flow, directory: Path) -> Any:
    """Start one of the queries, or go on with it."""
    options = {
        "url": plan.url,
        "queue": flow.queue,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(plan.rows),
        "minPartitions": "2",
        "fetchTimeout": "20s",
        "bodyFormat": "json",
        "schema": "id BIGINT, text STRING",
    }
    source = spark.readStream.format("harebell").options(**options).load()
    view = f"source_{flow.name}"
    source.createOrReplaceTempView(view)
    rows = spark.sql(SQL.format(source=view))
    if flow.exchange is not None:
        rows = rows.selectExpr(
            "to_json(struct(id, text, digest)) AS value",
            f"concat('{flow.name}.', id % 7) AS routing_key",
        )
    writer = rows.writeStream.option(
        "checkpointLocation", str(directory / flow.name / "checkpoint")
    )
    writer = writer.trigger(availableNow=True) if plan.drain else writer
    if flow.exchange is None:
        return writer.format("parquet").start(str(directory / flow.name / "lake"))
    to = {"url": plan.url, "exchange": flow.exchange}
    return writer.format("harebell").options(**to).start()


def started(query: Any) -> Any:
    """Wait until a query is under way.

    Spark gives each of its Python processes ten seconds to start: they start one by one.
    """
    until = time.monotonic() + _STARTING_SECONDS
    while query.isActive and query.status["message"] == _STARTING and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    return query


def end_of(start: Callable[[], Any], query: Any) -> tuple[Any, str | None]:
    """A query that runs, or None when it has ended well, and why one has ended otherwise."""
    try:
        if query is None:
            query = started(start())
        if query.isActive:
            return query, None
        error = query.exception()
    except PySparkException as failed:
        # It could not be started: the broker may be on its way.
        error = failed
    return None, None if error is None else str(error)


def main(directory: Path) -> None:
    """Run the queries until told otherwise."""
    plan = Plan.read(directory)
    settings = {
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.streaming.checkpointFileManagerClass": _LOCAL_DISK,
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": java_options(find_cache(find_java()), _FAST_START),
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.excludeOnFailure.enabled": "false",
    }
    spark = build_session("chaos", master=plan.master, short_lived=True, settings=settings)
    running: dict[str, Any] = {flow.name: None for flow in plan.flows}
    with (directory / "ends").open("a") as ends:
        # The one before may have been killed in the middle of a line.
        ends.write("\n")
        while running and not (directory / "stop").exists():
            for flow in plan.flows:
                if flow.name not in running:
                    continue
                query, why = end_of(
                    partial(start, spark, plan, flow, directory), running[flow.name]
                )
                running[flow.name] = query
                if why is not None:
                    ends.write(json.dumps({"flow": flow.name, "why": why}) + "\n")
                    ends.flush()
                    time.sleep(_AGAIN_SECONDS)
                elif query is None:
                    del running[flow.name]
            if running and all(running.values()):
                (directory / "started").touch()
            time.sleep(_LOOK_SECONDS)
    for query in running.values():
        if query is not None:
            query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
