"""A query from a queue into Parquet files, which can be run again from its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession


class Lake:
    """The query.

    Args:
        spark: the session.
        options: of the source; a test may change them before the first run.
        directory: for results and checkpoint.

    Attributes:
        schema: the columns to read; None for those of the source.
    """

    def __init__(self, spark: SparkSession, options: dict[str, str], directory: Path) -> None:
        self.spark = spark
        self.options = options
        self.directory = directory
        self.schema: str | None = None

    def stream(self) -> DataFrame:
        """What is read."""
        reader = self.spark.readStream.format("harebell").options(**self.options)
        return (reader.schema(self.schema) if self.schema else reader).load()

    def writer(self) -> Any:
        """A writer of what there is, which ends by itself."""
        checkpoint = str(self.directory / "checkpoint")
        writer = self.stream().writeStream.option("checkpointLocation", checkpoint)
        return writer.trigger(availableNow=True)

    def run(self) -> Any:
        """Read what there is; the query, which has ended."""
        query = self.writer().format("parquet").start(str(self.directory / "lake"))
        assert query.awaitTermination(300), "the query should have ended by itself"
        return query

    def stored(self) -> DataFrame:
        """What was written."""
        return self.spark.read.parquet(str(self.directory / "lake"))

    def ids(self) -> list[int]:
        """The numbers that the bodies are, sorted."""
        return sorted(int(row["value"]) for row in self.stored().select("value").collect())

    def forget_last_commit(self) -> None:
        """What a crash between the sink's commit and Spark's own leaves behind."""
        commits = self.directory / "checkpoint" / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        for name in (f"{last}", f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)
