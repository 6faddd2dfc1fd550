"""A query for Spark's Kafka source, moved to Harebell by changing the format and three options.

python examples/spark_kafka_code.py [amqp://guest:guest@localhost:5672/%2F]
"""

from __future__ import annotations

import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession

from harebell.client import blocking
from harebell.spark.session import build_session

STREAM = "example.clicks"
USERS = 5
CLICKS = 1_000


def publish(url: str) -> None:
    """Publish clicks to a stream; the routing key is what a key is in Kafka."""
    with blocking.connect(url) as connection:
        channel = connection.channel()
        channel.delete_queue(STREAM)
        channel.declare_queue(STREAM, durable=True, arguments={"x-queue-type": "stream"})
        channel.declare_exchange("example.pages", "fanout", durable=True)
        channel.bind_queue(STREAM, "example.pages")
        for user in range(USERS):
            clicks = [b'{"page": "/%d"}' % (number % 7) for number in range(CLICKS // USERS)]
            channel.publish_many(clicks, exchange="example.pages", routing_key=f"user-{user}")


def read(spark: SparkSession, url: str) -> DataFrame:
    """Return the clicks as a stream; the comments are the lines that Kafka needs."""
    return (
        spark.readStream.format("harebell")  # format("kafka")
        .option("url", url)  # option("kafka.bootstrap.servers", "...")
        .option("queue", STREAM)  # option("subscribe", "clicks")
        .option("columns", "kafka")
        .option("startingOffsets", "earliest")
        .load()
    )


def count_by_user(clicks: DataFrame, directory: str) -> dict[str, int]:
    """Count clicks by user: the code after `load()` is the same as for Kafka."""
    parsed = clicks.selectExpr(
        "CAST(key AS STRING) AS user",
        "from_json(CAST(value AS STRING), 'page STRING').page AS page",
        "topic",
        "partition",
        "offset",
    )
    query = (
        parsed.writeStream.format("parquet")
        .option("path", f"{directory}/clicks")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    stored = clicks.sparkSession.read.parquet(f"{directory}/clicks")
    return {row["user"]: row["count"] for row in stored.groupBy("user").count().collect()}


def main(url: str) -> None:
    """Run all of it."""
    publish(url)
    spark = build_session("kafka-code", short_lived=True)
    try:
        with tempfile.TemporaryDirectory() as directory:
            counts = count_by_user(read(spark, url), directory)
    finally:
        spark.stop()
    for user, count in sorted(counts.items()):
        print(f"{user} clicked {count} times")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "amqp://guest:guest@localhost:5672/%2F")
