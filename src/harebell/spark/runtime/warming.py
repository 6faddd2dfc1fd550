"""Build the class-data archive: run a short session that loads the classes of pipelines.

    python -m harebell.spark.runtime.warming FILE

The JVM writes the archive when it exits (-XX:ArchiveClassesAtExit), with all classes that are
loaded then. So the training run uses everything that a pipeline uses: a Python source and sink, a
micro-batch query, SQL, JSON, Parquet.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from harebell.spark.limits import SPARK_WARM_SECONDS
from harebell.spark.runtime.java import SessionError, find_java
from harebell.spark.runtime.spark_home_cache import find_cache

_ROWS = 100


class TrainingReader(DataSourceReader, DataSourceStreamReader):
    """A few rows in Arrow, as a table and as one micro-batch."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset before the rows."""
        return {"rows": 0}

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802
        """Return the offset after the rows."""
        return {"rows": _ROWS}

    def partitions(self, *_ends: Any) -> list[InputPartition]:
        """Return one partition."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows."""
        yield pa.record_batch({"value": pa.array([b'{"n": 1}'] * _ROWS, pa.binary())})


class TrainingWriter(DataSourceStreamArrowWriter):
    """Count the rows of each partition."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Count the rows."""
        assert sum(batch.num_rows for batch in iterator) >= 0, "rows are counted"
        return WriterCommitMessage()


class TrainingSource(DataSource):
    """A source and a sink without a broker."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "harebell_training"

    def schema(self) -> str:
        """Return one column, as messages have it."""
        return "value binary"

    def reader(self, schema: StructType) -> TrainingReader:
        """Return the reader for spark.read."""
        return TrainingReader()

    def streamReader(self, schema: StructType) -> TrainingReader:  # noqa: N802
        """Return the reader for spark.readStream."""
        return TrainingReader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> TrainingWriter:  # noqa: N802
        """Return the writer for writeStream."""
        return TrainingWriter()


def warm(*, rebuild: bool = False) -> tuple[Path, bool]:
    """Build the archive in a separate process.

    Args:
        rebuild: also if there is one.

    Returns:
        The archive, and whether it was built now.

    Raises:
        SessionError: Spark cannot start here, or the archive could not be built.
    """
    cache = find_cache(find_java())
    if cache.archive.is_file() and not rebuild:
        return cache.archive, False
    cache.directory.mkdir(parents=True, exist_ok=True)
    draft = cache.directory / f"classes-{os.getpid()}-{secrets.token_hex(4)}.jsa"
    try:
        code, printed = _run_training(draft)
        if code != 0 or not draft.is_file():
            said = printed.strip().splitlines()
            reason = said[-1] if said else "the JVM wrote no archive"
            raise SessionError(f"the class-data archive could not be made: {reason}")
        draft.replace(cache.archive)
    except subprocess.TimeoutExpired:
        raise SessionError(
            f"the class-data archive was not made within {SPARK_WARM_SECONDS:g} s"
        ) from None
    finally:
        draft.unlink(missing_ok=True)
    return cache.archive, True


def _run_training(draft: Path) -> tuple[int, str]:
    """Run the training session in a process group that is killed afterwards, with its JVM.

    Returns:
        Its exit code and output.

    Raises:
        TimeoutExpired: it took too long.
    """
    command = [sys.executable, "-m", "harebell.spark.runtime.warming", str(draft)]
    # A file, not a pipe: a JVM that survives would keep a pipe open, and reading would block.
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        training = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            training.wait(SPARK_WARM_SECONDS)
        finally:
            # Whatever ended the run, an error, the timeout or Ctrl-C: no JVM survives.
            with suppress(ProcessLookupError):
                os.killpg(training.pid, signal.SIGKILL)
            training.wait()
        said.seek(0)
        return training.returncode, said.read()


def train(spark: SparkSession, directory: Path) -> None:
    """Run what pipelines use."""
    spark.dataSource.register(TrainingSource)
    rows = spark.read.format("harebell_training").load()
    rows.createOrReplaceTempView("training")
    counted = spark.sql(
        "SELECT from_json(CAST(value AS STRING), 'n BIGINT').n AS n, count(*) AS many "
        "FROM training GROUP BY 1 ORDER BY 1"
    )
    counted.write.mode("overwrite").parquet(str(directory / "lake"))
    spark.read.parquet(str(directory / "lake")).collect()
    stream = spark.readStream.format("harebell_training").load()

    def write(batch: DataFrame, number: int) -> None:
        batch.persist()
        batch.selectExpr("length(value)").write.format("noop").mode("overwrite").save()
        batch.unpersist()

    for number, writer in enumerate(
        (stream.writeStream.foreachBatch(write), stream.writeStream.format("harebell_training"))
    ):
        query = writer.option("checkpointLocation", str(directory / f"checkpoint-{number}")).start()
        query.processAllAvailable()
        query.stop()


def main(archive: Path) -> None:
    """Run the training session and wait until the JVM has written the archive."""
    # Imported here: executors import this module, too, for TrainingReader.
    from harebell.spark.session import build_session

    with tempfile.TemporaryDirectory(prefix="harebell-warm-") as directory:
        session = build_session(
            "warm",
            settings={
                "spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive}",
                "spark.sql.warehouse.dir": f"{directory}/warehouse",
            },
        )
        gateway = getattr(session.sparkContext, "_gateway", None)
        train(session, Path(directory))
        session.stop()
        assert gateway is not None, "a session here has a JVM"
        gateway.shutdown()
        # The JVM ends with its standard input, and writes the archive then.
        gateway.proc.stdin.close()
        gateway.proc.wait(SPARK_WARM_SECONDS)


if __name__ == "__main__":
    # By its name, not as __main__: executors import the module by name.
    from harebell.spark.runtime import warming

    warming.main(Path(sys.argv[1]))
