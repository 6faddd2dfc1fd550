"""A program over Spark Connect: writes numbers to a queue, looks at them, moves them to another.

python connect_driver.py MASTER URL FROM TO ROWS CHECKPOINT
"""

from __future__ import annotations

import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from harebell.spark.session import build_session


def whereabouts(_: int) -> str:
    """Where an executor has its Harebell from, and which implementation it is."""
    import harebell
    from harebell.base.impl import chosen

    return f"executor: {harebell.__file__} {chosen()}\n"


def move(spark: SparkSession, url: str, first: str, second: str, rows: int, directory: str) -> None:
    """A streaming query from one queue to the default exchange."""
    stream = (
        spark.readStream.format("harebell")
        .options(url=url, queue=first, maxOffsetsPerTrigger=rows // 2, minPartitions=2)
        .options(fetchTimeout="300s")
        .load()
    )
    query = (
        stream.select("value", "headers")
        .writeStream.format("harebell")
        .options(url=url, exchange="", routingKey=second, confirmTimeout="300s")
        .option("checkpointLocation", directory)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sys.stdout.write(f"micro-batches: {len(query.recentProgress)}\n")


def main(master: str, url: str, first: str, second: str, rows: int, directory: str) -> None:
    """Write, look, move, and say what was seen."""
    spark = build_session("connect", master=master, settings={"spark.sql.shuffle.partitions": "2"})
    sys.stdout.write(f"session: {type(spark).__module__}\n")
    numbers = spark.range(0, rows, 1, 4).selectExpr(
        "CAST(id AS STRING) AS value", "map('number', CAST(id AS STRING)) AS headers"
    )
    numbers.write.format("harebell").options(url=url, queue=first).mode("append").save()
    seen = spark.read.format("harebell").options(url=url, queue=first).load()
    sys.stdout.write(f"looked at: {seen.count()}\n")
    requested = spark.range(0, 4, 1, 2).select(udf(whereabouts, "string")("id").alias("line"))
    for line in sorted({row.line for row in requested.collect()}):
        sys.stdout.write(line)
    try:
        move(spark, url, first, second, rows, directory)
    except PySparkException as error:
        sys.stdout.write(f"the query failed: {error}\n")
    spark.stop()


if __name__ == "__main__":
    master, url, first, second, rows, directory = sys.argv[1:7]
    main(master, url, first, second, int(rows), directory)
