"""What Spark itself can do: a source and a sink of the same shape that talk to nobody.

    synthetic source    rows of 200 B from memory: offsets, partitions and record batches are made
                        as those of `harebell` are, and no broker is asked
    synthetic sink      takes record batches, as the sink of `harebell` does, and counts them

What a query over them reaches is the ceiling for a query over queues on the same machine. Spark's
Python processes get these classes by value, for they cannot import the benchmarks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

FORMAT = "bench_synthetic"
_ROWS_PER_BATCH = 8_192
_BODY = b"x" * 200


class SyntheticReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Rows from memory.

    Args:
        options: `rows`: how many there are; `perBatch`: most in a micro-batch; `partitions`: of
            a micro-batch; `pause`: seconds for which a micro-batch waits for rows.
        schema: the wanted columns.
    """

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._rows = int(options["rows"])
        self._limit = int(options["perbatch"])
        self._partitions = int(options["partitions"])
        self._pause = float(options.get("pause", "0"))
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Before the first row."""
        return {"rows": 0, "ms": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """All rows are there."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As the option says."""
        return ReadMaxRows(self._limit)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """So many rows further; the offset has the time at which that was found out."""
        end = min(self._rows, int(start["rows"]) + self._limit)
        if end == start["rows"]:
            return start
        time.sleep(self._pause)
        return {"rows": end, "ms": time.time_ns() // 1_000_000}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Ranges of numbers."""
        first, last = int(start["rows"]), int(end["rows"])
        count = max(1, min(self._partitions, (last - first) // 1024))
        bounds = [first + (last - first) * number // count for number in range(count + 1)]
        return [InputPartition((begin, end)) for begin, end in pairwise(bounds)]

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is held."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """One batch again and again: rows that cost nothing to make."""
        first, end = partition.value
        whole = self._batch(min(_ROWS_PER_BATCH, end - first))
        for begin in range(first, end, _ROWS_PER_BATCH):
            yield whole.slice(0, min(_ROWS_PER_BATCH, end - begin))

    def _batch(self, rows: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [_column(field, rows) for field in self._schema], schema=self._schema
        )


def _column(field: pa.Field, rows: int) -> pa.Array:
    kind = field.type
    if pa.types.is_binary(kind):
        return pa.array([_BODY] * rows, kind)
    if pa.types.is_string(kind):
        return pa.array(["orders"] * rows, kind)
    if pa.types.is_timestamp(kind) or pa.types.is_integer(kind):
        return pa.array(range(rows), pa.int64()).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array([False] * rows, kind)
    if pa.types.is_struct(kind):
        # As a message without properties but its delivery mode has them.
        children = [
            pa.array([2] * rows, one.type)
            if one.name == "delivery_mode"
            else pa.nulls(rows, one.type)
            for one in kind
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind))
    return pa.nulls(rows, kind)


class SyntheticWriter(DataSourceArrowWriter):
    """Takes record batches."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Count them."""
        for batch in iterator:
            assert batch.num_columns, "batches have columns"
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing is to be done."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing is to be done."""


class SyntheticSource(DataSource):
    """The format."""

    @classmethod
    def name(cls) -> str:
        """As Spark knows it."""
        return FORMAT

    def streamReader(self, schema: StructType) -> SyntheticReader:  # noqa: N802
        """For readStream."""
        return SyntheticReader({k.lower(): v for k, v in self.options.items()}, schema)

    def writer(self, schema: StructType, overwrite: bool) -> SyntheticWriter:
        """For df.write."""
        return SyntheticWriter()


def register(spark: SparkSession) -> None:
    """Make a session know the format."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    spark.dataSource.register(SyntheticSource)
