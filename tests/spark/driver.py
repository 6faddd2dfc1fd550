"""A Spark driver to be killed: one AvailableNow query from a queue into Parquet.

python driver.py URL QUEUE DIRECTORY DELIVERY
"""

from __future__ import annotations

import sys
from pathlib import Path

from harebell.spark.session import build_session


def main(url: str, queue: str, directory: Path, delivery: str) -> None:
    """Run the query to its end."""
    warehouse = {"spark.sql.warehouse.dir": str(directory / "warehouse")}
    spark = build_session("to be killed", cores=2, short_lived=True, settings=warehouse)
    stream = (
        spark.readStream.format("harebell")
        .option("url", url)
        .option("queue", queue)
        .option("maxOffsetsPerTrigger", 500)
        .option("fetchTimeout", "300s")
        .option("spoolDir", str(directory / "spool"))
        .option("delivery", delivery)
        .schema("value BINARY, redelivered BOOLEAN")
        .load()
    )
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(directory / "lake"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
