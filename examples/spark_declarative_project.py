"""A project of Spark's declarative pipelines: orders from a queue into tables, and to an exchange.

python examples/spark_declarative_project.py [amqp://guest:guest@localhost:5672/%2F]

`harebell pipeline init --sdp` makes the project; its file transformations/orders.py is what you
would edit.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from harebell.client import blocking

BIN = Path(sys.executable).parent
RUN = "spark-pipelines run --conf spark.sql.catalogImplementation=hive"


def publish(url: str) -> None:
    """Publish orders, and have a queue for those that the project sends on."""
    orders = [
        b'{"id": %d, "region": "%b", "total": %d}' % (number, (b"eu", b"us")[number % 2], number)
        for number in range(1_000)
    ]
    with blocking.connect(url) as connection:
        channel = connection.channel()
        for queue in ("orders", "example.large"):
            channel.delete_queue(queue)
            channel.declare_queue(queue, durable=True)
        channel.bind_queue("example.large", "amq.topic", "#")
        channel.publish_many(orders, routing_key="orders", persistent=True)


def run(url: str, project: Path) -> None:
    """Make the project and run it until the queue is empty."""
    environment = os.environ | {
        "HAREBELL_URL": url,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        # Spark starts Python by this name, and that Python must have Harebell.
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    made = [BIN / "harebell", "pipeline", "init", project, "--sdp"]
    for command, directory in ((made, project.parent), (shlex.split(RUN), project)):
        subprocess.run(
            command,
            cwd=directory,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )


def main(url: str) -> None:
    """Run all of it."""
    publish(url)
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory, "shop")
        run(url, project)
        totals = pq.read_table(project / "spark-warehouse" / "totals")
        for row in sorted(totals.to_pylist(), key=lambda row: row["region"]):
            print(f"{row['region']}: {row['count(id)']} orders, {row['sum(total)']:.0f} in all")
    with blocking.connect(url) as connection:
        for queue in ("orders", "example.large"):
            count = connection.channel().declare_queue(queue, passive=True).message_count
            print(f"{queue} has {count} messages")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "amqp://guest:guest@localhost:5672/%2F")
