"""From the lake to an exchange: rows of Parquet files as messages, each published once.

python examples/spark_lake_to_exchange.py [amqp://guest:guest@localhost:5672/%2F]
"""

from __future__ import annotations

import sys
import tempfile

from harebell.client import blocking
from harebell.spark.session import build_session

EXCHANGE = "example.readings"
WARM, COLD = "example.warm", "example.cold"
COUNT = 2_000


def declare(url: str) -> None:
    """Declare an exchange and two queues with another binding key each."""
    with blocking.connect(url) as connection:
        channel = connection.channel()
        channel.declare_exchange(EXCHANGE, "topic", durable=True)
        for queue, key in ((WARM, "*.warm"), (COLD, "*.cold")):
            channel.delete_queue(queue)
            channel.declare_queue(queue, durable=True)
            channel.bind_queue(queue, EXCHANGE, key)


def main(url: str) -> None:
    """Run all of it."""
    declare(url)
    spark = build_session("lake-to-exchange", short_lived=True)
    try:
        with tempfile.TemporaryDirectory() as directory:
            readings = spark.range(COUNT).selectExpr(
                "concat('sensor-', id % 10) AS sensor", "CAST(id % 40 AS DOUBLE) AS degrees"
            )
            readings.write.parquet(f"{directory}/readings")
            stored = spark.read.parquet(f"{directory}/readings")
            messages = stored.selectExpr(
                "to_json(struct(*)) AS value",
                "concat(sensor, IF(degrees < 10, '.cold', '.warm')) AS routing_key",
                "struct('application/json' AS content_type) AS properties",
            )
            for _ in range(2):
                # The second time publishes nothing: this version of the table was published.
                messages.write.format("harebell").mode("append").options(
                    url=url, exchange=EXCHANGE, txnAppId=f"readings of {directory}", txnVersion=1
                ).save()
    finally:
        spark.stop()
    with blocking.connect(url) as connection:
        channel = connection.channel()
        for queue in (WARM, COLD):
            count = channel.declare_queue(queue, passive=True).message_count
            print(f"{queue} has {count} messages")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "amqp://guest:guest@localhost:5672/%2F")
