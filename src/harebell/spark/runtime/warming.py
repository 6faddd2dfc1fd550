"""Make the class-data archive: a short session that loads the classes pipelines load.

    python -m harebell.spark.runtime.warming FILE

The JVM writes the archive when it ends (-XX:ArchiveClassesAtExit), with all classes that it has
loaded until then. So the lesson touches everything that a pipeline uses: a Python source and sink,
a micro-batch query, SQL, JSON, Parquet.
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

from harebell.base.limits import SPARK_WARM_SECONDS
from harebell.spark.runtime.java import SessionError, find_java
from harebell.spark.runtime.spark_home_cache import find_cache

_ROWS = 100


class LessonReader(DataSourceReader, DataSourceStreamReader):
    """A few rows in Arrow, as a table and as one micro-batch."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Before the rows."""
        return {"rows": 0}

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802
        """After them."""
        return {"rows": _ROWS}

    def partitions(self, *_ends: Any) -> list[InputPartition]:
        """One."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows."""
        yield pa.record_batch({"value": pa.array([b'{"n": 1}'] * _ROWS, pa.binary())})


class LessonWriter(DataSourceStreamArrowWriter):
    """Counts what it gets."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Count."""
        assert sum(batch.num_rows for batch in iterator) >= 0, "rows are counted"
        return WriterCommitMessage()


class LessonSource(DataSource):
    """A source and a sink that need no broker."""

    @classmethod
    def name(cls) -> str:
        """Its format."""
        return "harebell_lesson"

    def schema(self) -> str:
        """One column, as messages have it."""
        return "value binary"

    def reader(self, schema: StructType) -> LessonReader:
        """For spark.read."""
        return LessonReader()

    def streamReader(self, schema: StructType) -> LessonReader:  # noqa: N802
        """For spark.readStream."""
        return LessonReader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> LessonWriter:  # noqa: N802
        """For writeStream."""
        return LessonWriter()


def warm(*, rebuild: bool = False) -> tuple[Path, bool]:
    """Make the archive in a process of its own.

    Args:
        rebuild: also when there is one.

    Returns:
        The archive, and whether it was made now.

    Raises:
        SessionError: Spark cannot be started here, or the archive could not be made.
    """
    places = find_cache(find_java())
    if places.archive.is_file() and not rebuild:
        return places.archive, False
    places.directory.mkdir(parents=True, exist_ok=True)
    draft = places.directory / f"classes-{os.getpid()}-{secrets.token_hex(4)}.jsa"
    try:
        code, printed = _run_lesson(draft)
        if code != 0 or not draft.is_file():
            said = printed.strip().splitlines()
            reason = said[-1] if said else "the JVM wrote no archive"
            raise SessionError(f"the class-data archive could not be made: {reason}")
        draft.replace(places.archive)
    except subprocess.TimeoutExpired:
        raise SessionError(
            f"the class-data archive was not made within {SPARK_WARM_SECONDS:g} s"
        ) from None
    finally:
        draft.unlink(missing_ok=True)
    return places.archive, True


def _run_lesson(draft: Path) -> tuple[int, str]:
    """Hold the lesson in a group of processes that is gone afterwards, its JVM too.

    Returns:
        Its exit code, and what it printed.

    Raises:
        TimeoutExpired: it takes too long.
    """
    command = [sys.executable, "-m", "harebell.spark.runtime.warming", str(draft)]
    # A file and no pipe: a JVM that is left would hold a pipe open, and nothing would end.
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        lesson = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            lesson.wait(SPARK_WARM_SECONDS)
        finally:
            # Whatever ended the lesson, an error, the time or Ctrl-C: no JVM stays behind.
            with suppress(ProcessLookupError):
                os.killpg(lesson.pid, signal.SIGKILL)
            lesson.wait()
        said.seek(0)
        return lesson.returncode, said.read()


def teach(spark: SparkSession, directory: Path) -> None:
    """Use what pipelines use."""
    spark.dataSource.register(LessonSource)
    rows = spark.read.format("harebell_lesson").load()
    rows.createOrReplaceTempView("lesson")
    counted = spark.sql(
        "SELECT from_json(CAST(value AS STRING), 'n BIGINT').n AS n, count(*) AS many "
        "FROM lesson GROUP BY 1 ORDER BY 1"
    )
    counted.write.mode("overwrite").parquet(str(directory / "lake"))
    spark.read.parquet(str(directory / "lake")).collect()
    stream = spark.readStream.format("harebell_lesson").load()

    def take(batch: DataFrame, number: int) -> None:
        batch.persist()
        batch.selectExpr("length(value)").write.format("noop").mode("overwrite").save()
        batch.unpersist()

    for number, writer in enumerate(
        (stream.writeStream.foreachBatch(take), stream.writeStream.format("harebell_lesson"))
    ):
        query = writer.option("checkpointLocation", str(directory / f"checkpoint-{number}")).start()
        query.processAllAvailable()
        query.stop()


def main(archive: Path) -> None:
    """Hold the lesson and wait until the JVM has written the archive."""
    # Imported here: the module is also imported by executors, for LessonReader.
    from harebell.spark.session import build_session

    with tempfile.TemporaryDirectory(prefix="harebell-warm-") as directory:
        session = build_session(
            "warm",
            settings={
                "spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive}",
                "spark.sql.warehouse.dir": f"{directory}/warehouse",
            },
        )
        gateway = session.sparkContext._gateway  # noqa: SLF001 - there is no public way to its end
        teach(session, Path(directory))
        session.stop()
        assert gateway is not None, "a session here has a JVM"
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(SPARK_WARM_SECONDS)


if __name__ == "__main__":
    # By its name, not as __main__: executors import the lesson from where it stands.
    from harebell.spark.runtime import warming

    warming.main(Path(sys.argv[1]))
