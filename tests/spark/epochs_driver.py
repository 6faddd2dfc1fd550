"""A Spark driver to be killed: a query whose sink keeps each part of a micro-batch once.

python epochs_driver.py URL QUEUE DIRECTORY DELIVERY [SECONDS]

With SECONDS progress is tracked asynchronously, and logged at most once in so many seconds, until
the driver is killed. Without, the query ends when the queue is empty.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from harebell.spark.session import build_session


class Epochs:
    """Writes a file for each part of a micro-batch, unless there is one.

    Args:
        directory: for the files.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open(self, partition: int, epoch: int) -> bool:
        """Begin a part, if it is not there."""
        self._file = self._directory / f"{epoch}-{partition}"
        self._rows: list[str] = []
        return not self._file.exists()

    def process(self, row: Any) -> None:
        """Take a row."""
        self._rows.append(bytes(row["value"]).decode())

    def close(self, error: Exception | None) -> None:
        """Put the part into its place."""
        if error is None and not self._file.exists():
            fresh = self._file.with_suffix(".new")
            fresh.write_text("\n".join(self._rows))
            fresh.rename(self._file)


def main(url: str, queue: str, directory: Path, delivery: str, seconds: str | None) -> None:
    """Run the query."""
    warehouse = {"spark.sql.warehouse.dir": str(directory / "warehouse")}
    spark = build_session("to be killed", cores=2, short_lived=True, settings=warehouse)
    stream = (
        spark.readStream.format("harebell")
        .option("url", url)
        .option("queue", queue)
        .option("maxOffsetsPerTrigger", 50)
        .option("spoolDir", str(directory / "spool"))
        .option("delivery", delivery)
        .schema("value BINARY")
        .load()
    )
    writer = stream.writeStream.foreach(Epochs(directory / "sink")).option(
        "checkpointLocation", str(directory / "checkpoint")
    )
    if seconds is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = (
            writer.trigger(processingTime="0 seconds")
            .option("asyncProgressTrackingEnabled", "true")
            .option("asyncProgressTrackingCheckpointIntervalMs", str(int(seconds) * 1000))
        )
    writer.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    given = sys.argv[5] if len(sys.argv) > 5 else None
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4], given)
