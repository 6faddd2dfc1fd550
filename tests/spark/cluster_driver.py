"""A driver on a cluster: writes numbers to one queue, moves them to another, and tells who did it.

python cluster_driver.py MASTER URL FROM TO ROWS CHECKPOINT
"""

from __future__ import annotations

import sys

from harebell.spark.session import build_session

_FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


def whereabouts(_: int) -> str:
    """Where an executor runs, where it has its Harebell from, and which implementation it is."""
    import os

    import harebell
    from harebell.base.impl import chosen

    return f"executor: {os.getcwd()} {harebell.__file__} {chosen()}\n"


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
    numbers = spark.range(0, rows, 1, 4).selectExpr("CAST(id AS STRING) AS value")
    numbers.write.format("harebell").options(url=url, queue=first).mode("append").save()
    stream = (
        spark.readStream.format("harebell")
        .options(url=url, queue=first, maxOffsetsPerTrigger=rows // 2, minPartitions=2)
        .options(fetchTimeout="300s")
        .load()
    )
    query = (
        stream.select("value")
        .writeStream.format("harebell")
        .options(url=url, queue=second, confirmTimeout="300s", checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sizes = [progress["numInputRows"] for progress in query.recentProgress]
    sys.stdout.write(f"micro-batches: {sizes}\n")
    for line in spark.sparkContext.parallelize(range(4), 4).map(whereabouts).collect():
        sys.stdout.write(line)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]), sys.argv[6])
