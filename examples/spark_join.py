"""A join of two streams: orders with the payment that came within ten minutes.

python examples/spark_join.py [amqp://guest:guest@localhost:5672/%2F]
"""

from __future__ import annotations

import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from harebell.client import blocking
from harebell.spark.session import build_session

ORDERS, PAYMENTS = "example.orders", "example.paid"
COUNT = 300


def publish(url: str) -> None:
    """Publish orders, and payments for two thirds of them, to two streams."""
    with blocking.connect(url) as connection:
        channel = connection.channel()
        for stream in (ORDERS, PAYMENTS):
            channel.delete_queue(stream)
            channel.declare_queue(stream, durable=True, arguments={"x-queue-type": "stream"})
        orders = [b'{"order": %d, "total": %d}' % (n, n * 10) for n in range(COUNT)]
        paid = [b'{"order": %d}' % n for n in range(COUNT) if n % 3]
        channel.publish_many(orders, routing_key=ORDERS)
        channel.publish_many(paid, routing_key=PAYMENTS)


def stream(spark: SparkSession, url: str, queue: str, schema: str) -> DataFrame:
    """Return the messages of a stream as rows with the time at which the broker got them."""
    given = {"url": url, "queue": queue, "startingOffsets": "earliest"}
    messages = (
        spark.readStream.format("harebell")
        .options(**given, bodyFormat="json", schema=schema)
        .load()
    )
    return messages.select("value.*", "timestamp").withWatermark("timestamp", "10 minutes")


def main(url: str) -> None:
    """Run all of it."""
    publish(url)
    spark = build_session("join", short_lived=True)
    try:
        orders = stream(spark, url, ORDERS, "order BIGINT, total BIGINT").alias("o")
        paid = stream(spark, url, PAYMENTS, "order BIGINT").alias("p")
        soon = (
            "p.order = o.order AND p.timestamp BETWEEN o.timestamp - INTERVAL 10 MINUTES "
            "AND o.timestamp + INTERVAL 10 MINUTES"
        )
        joined = orders.join(paid, f.expr(soon)).select("o.order", "o.total")
        with tempfile.TemporaryDirectory() as directory:
            query = (
                joined.writeStream.format("parquet")
                .option("path", f"{directory}/paid")
                .option("checkpointLocation", f"{directory}/checkpoint")
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            rows = spark.read.parquet(f"{directory}/paid")
            count, total = rows.agg(f.count("*"), f.sum("total")).collect()[0]
    finally:
        spark.stop()
    print(f"{count} of {COUNT} orders are paid, {total} in all")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "amqp://guest:guest@localhost:5672/%2F")
