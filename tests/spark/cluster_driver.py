"""A driver on a cluster: moves numbers of a queue and a stream to a queue, and tells who did it.

python cluster_driver.py MASTER URL FROM TO ROWS CHECKPOINT
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import SparkSession

from harebell.spark.session import build_session

_FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


def whereabouts(_: int) -> str:
    """Where an executor runs, where it has its Harebell from, and which implementation it is."""
    import os

    import harebell
    from harebell.base.impl import chosen

    return f"executor: {os.getcwd()} {harebell.__file__} {chosen()}\n"


def move(spark: SparkSession, url: str, first: str, second: str, rows: int, place: str) -> Any:
    """A streaming query from one queue to another, until what is there is read."""
    stream = (
        spark.readStream.format("harebell")
        .options(url=url, queue=first, maxOffsetsPerTrigger=rows // 2, minPartitions=2)
        .options(fetchTimeout="300s", maxConnections=1, startingOffsets="earliest")
        .load()
    )
    return (
        stream.select("value")
        .writeStream.format("harebell")
        .options(url=url, queue=second, confirmTimeout="300s", checkpointLocation=place)
        .trigger(availableNow=True)
        .start()
    )


def main(master: str, url: str, first: str, second: str, rows: int, checkpoint: str) -> None:
    """Write, move, and say what was seen."""
    settings = {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": _FAST_START,
        "spark.cores.max": "2",
        # Both executors are there before the first task, however long they take to start.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    }
    spark = build_session("cluster", master=master, short_lived=True, settings=settings)
    for queue, begin in ((first, 0), (f"{first}.log", rows)):
        numbers = spark.range(begin, begin + rows, 1, 4).selectExpr("CAST(id AS STRING) AS value")
        numbers.write.format("harebell").options(url=url, queue=queue).mode("append").save()
    query, other = (
        move(spark, url, queue, second, rows, f"{checkpoint}/{queue}")
        for queue in (first, f"{first}.log")
    )
    query.awaitTermination()
    other.awaitTermination()
    sizes = [progress["numInputRows"] for progress in query.recentProgress]
    sys.stdout.write(f"micro-batches: {sizes}\n")
    for line in spark.sparkContext.parallelize(range(4), 4).map(whereabouts).collect():
        sys.stdout.write(line)
    spark.stop()


if __name__ == "__main__":
    master, url, first, second, rows, directory = sys.argv[1:7]
    main(master, url, first, second, int(rows), directory)
