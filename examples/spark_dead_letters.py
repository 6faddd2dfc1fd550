"""Triage of dead letters: why messages died, and a second chance for those that may have one.

python examples/spark_dead_letters.py [amqp://guest:guest@localhost:5672/%2F]
"""

from __future__ import annotations

import sys
import tempfile

from pyspark.sql import DataFrame

from harebell.client import blocking
from harebell.spark.session import build_session

PAYMENTS = "example.payments"
FAILED = "example.payments.failed"
AGAIN = "example.payments.again"
COUNT = 60


def fail(url: str) -> None:
    """Publish payments, and reject them all: a fifth without an amount, the others in time."""
    with blocking.connect(url) as connection:
        channel = connection.channel()
        for queue in (PAYMENTS, FAILED, AGAIN):
            channel.delete_queue(queue)
        for queue in (FAILED, AGAIN):
            channel.declare_queue(queue, durable=True)
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": FAILED}
        channel.declare_queue(PAYMENTS, durable=True, arguments=arguments)
        payments = [
            b'{"id": %d}' % number if number % 5 == 0 else b'{"id": %d, "amount": 9}' % number
            for number in range(COUNT)
        ]
        channel.publish_many(payments, routing_key=PAYMENTS, persistent=True)
        for _ in payments:
            delivery = channel.get(PAYMENTS)
            assert delivery is not None, "as many were confirmed"
            delivery.reject()


def triage(dead: DataFrame, url: str) -> None:
    """Publish the payments that have an amount again, and drop the others; each once."""
    (
        dead.where("value.amount IS NOT NULL AND death.count < 3")
        .selectExpr("to_json(value) AS value")
        .write.format("harebell")
        .options(url=url, queue=AGAIN)
        .mode("append")
        .save()
    )


def main(url: str) -> None:
    """Run all of it."""
    fail(url)
    given = {
        "url": url,
        "deadLettersOf": PAYMENTS,
        "bodyFormat": "json",
        "schema": "id BIGINT, amount BIGINT",
    }
    spark = build_session("dead-letters", short_lived=True)
    try:
        # A batch read removes nothing: look first.
        seen = spark.read.format("harebell").options(**given).load()
        reasons = seen.selectExpr("death.queue", "death.reason", "value.amount IS NULL AS broken")
        for row in reasons.groupBy("queue", "reason", "broken").count().orderBy("count").collect():
            kind = "without an amount" if row["broken"] else "complete"
            print(f"{row['count']} {row['reason']} in {row['queue']}, {kind}")
        with tempfile.TemporaryDirectory() as directory:
            query = (
                spark.readStream.format("harebell")
                .options(**given)
                .load()
                .writeStream.foreachBatch(lambda batch, _: triage(batch, url))
                .option("checkpointLocation", f"{directory}/checkpoint")
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
    finally:
        spark.stop()
    with blocking.connect(url) as connection:
        channel = connection.channel()
        for queue in (FAILED, AGAIN):
            count = channel.declare_queue(queue, passive=True).message_count
            print(f"{queue} has {count} messages")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "amqp://guest:guest@localhost:5672/%2F")
