"""A driver on a standalone cluster: a queue and a stream go to one queue, and it tells what it saw.

python standalone_driver.py MASTER URL SCENARIO ROWS DIRECTORY

The queues are `SCENARIO.queue`, `SCENARIO.stream` and `SCENARIO.target`. The scenarios:

    killed    the first task of micro-batch 1 waits in the middle of its rows; the test kills its
              executor, whose process it has named in a file
    twice     the first attempt of a task waits for a second one, which speculation starts
    dynamic   executors come and go, between two runs of the queries

Each attempt of a task leaves a file in `attempts`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from harebell.spark.session import build_session

_FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
_WAIT_SECONDS = 120.0
KINDS = ("queue", "stream")
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
    "spark.executor.extraJavaOptions": _FAST_START,
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.excludeOnFailure.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
SCENARIOS = {
    "killed": {},
    "twice": {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.minTaskRuntime": "100ms",
    },
    "dynamic": {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.initialExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.dynamicAllocation.executorIdleTimeout": "2s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    },
}


def working(
    scenario: str, kind: str, directory: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What tasks do with their rows: pass them on, and what the scenario says."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        part, attempt = context.partitionId(), context.attemptNumber()
        place = Path(directory)

        def marked(name: str) -> None:
            (place / "attempts" / f"{kind}-{batch}-{part}-{name}").touch()

        def wait(seen: Callable[[], bool]) -> None:
            until = time.monotonic() + _WAIT_SECONDS
            while not seen() and time.monotonic() < until:
                time.sleep(0.05)

        marked(str(attempt))
        waits = batch == 1 and part == 0 and attempt == 0
        for number, rows in enumerate(batches):
            yield rows
            if not waits or number:
                continue
            if scenario == "killed" and kind == "queue":
                # This process was started by the daemon, and that by the executor.
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
                executor = daemon.rpartition(") ")[2].split()[1]
                (place / "executor.new").write_text(executor)
                (place / "executor.new").rename(place / "executor")
                wait(lambda: False)
            if scenario == "twice":
                wait(lambda: (place / "attempts" / f"{kind}-{batch}-{part}-1").exists())
        marked(f"{attempt}-done")

    return work


def start(spark: SparkSession, url: str, scenario: str, kind: str, rows: int, place: Path) -> Any:
    """A query from one of the two to the target, until what is there is read."""
    stream = (
        spark.readStream.format("harebell")
        .options(url=url, queue=f"{scenario}.{kind}", startingOffsets="earliest")
        .options(maxOffsetsPerTrigger=rows // 4, minPartitions=4, rowsPerBatch=50)
        .options(fetchTimeout="300s", maxConnections=1)
        .load()
        .selectExpr(f"concat('{kind} ', CAST(value AS STRING)) AS value")
    )
    return (
        stream.mapInArrow(working(scenario, kind, str(place)), stream.schema)
        .writeStream.format("harebell")
        .options(url=url, queue=f"{scenario}.target", confirmTimeout="300s")
        .option("checkpointLocation", str(place / kind))
        .trigger(availableNow=True)
        .start()
    )


def executors(spark: SparkSession) -> int:
    """How many there are; the driver is counted by Spark, too."""
    count: int = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
    return count - 1


def run(spark: SparkSession, url: str, scenario: str, rows: int, place: Path) -> None:
    """Both queries to their ends."""
    queries = [start(spark, url, scenario, kind, rows, place) for kind in KINDS]
    most = 0
    while any(query.isActive for query in queries):
        most = max(most, executors(spark))
        time.sleep(0.1)
    for query in queries:
        query.awaitTermination()
    sys.stdout.write(f"executors: {most}\n")


def main(master: str, url: str, scenario: str, rows: int, place: Path) -> None:
    """Run the scenario."""
    (place / "attempts").mkdir()
    settings = SETTINGS | SCENARIOS[scenario]
    spark = build_session("standalone", master=master, short_lived=True, settings=settings)
    run(spark, url, scenario, rows, place)
    if scenario == "dynamic":
        until = time.monotonic() + _WAIT_SECONDS
        while executors(spark) and time.monotonic() < until:
            time.sleep(0.1)
        sys.stdout.write(f"executors: {executors(spark)}\n")
        sys.stdout.flush()
        (place / "idle").touch()
        while not (place / "more").exists() and time.monotonic() < until + _WAIT_SECONDS:
            time.sleep(0.1)
        run(spark, url, scenario, rows, place)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
