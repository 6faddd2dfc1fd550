"""A work queue to a Delta table: queue_to_delta.yaml run twice, and each order stored once.

python examples/spark_queue_to_delta.py [amqp://guest:guest@localhost:5672/%2F]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from deltalake import DeltaTable

from harebell.client import blocking

QUEUE = "example.orders"
COUNTRIES = ("de", "fr", "it")
PIPELINE = Path(__file__).with_name("queue_to_delta.yaml")


def publish(url: str, first: int, last: int) -> None:
    """Publish orders, one of which is no JSON."""
    orders = [
        b'{"id": %d, "country": "%s", "total": %d}'
        % (number, COUNTRIES[number % len(COUNTRIES)].encode(), number)
        for number in range(first, last)
    ]
    with blocking.connect(url) as connection:
        channel = connection.channel()
        channel.declare_queue(QUEUE, durable=True)
        channel.publish_many([*orders, b"no JSON"], routing_key=QUEUE, persistent=True)


def run(url: str, lake: str) -> None:
    """Run the pipeline until the queue is empty."""
    subprocess.run(
        [sys.executable, "-m", "harebell", "pipeline", "run", PIPELINE],
        env=os.environ | {"URL": url, "LAKE": lake, "HAREBELL_PIPELINES": f"{lake}/state"},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def main(url: str) -> None:
    """Run all of it."""
    with blocking.connect(url) as connection:
        connection.channel().delete_queue(QUEUE)
    with tempfile.TemporaryDirectory() as lake:
        publish(url, 1, 601)
        run(url, lake)
        # The driver dies before Spark's checkpoint has the last micro-batch: it plans it again.
        max(Path(lake, "checkpoint", "commits").glob("[0-9]*")).unlink()
        publish(url, 601, 901)
        run(url, lake)
        orders = DeltaTable(f"{lake}/orders").to_pyarrow_table().group_by("country")
        counts = orders.aggregate([("total", "sum"), ("id", "count"), ("id", "count_distinct")])
        for row in sorted(counts.to_pylist(), key=lambda row: row["country"]):
            assert row["id_count"] == row["id_count_distinct"]
            print(f"{row['country']}: {row['id_count']} orders, {row['total_sum']:.0f} in all")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "amqp://guest:guest@localhost:5672/%2F")
