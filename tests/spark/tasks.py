"""Writers called as Spark's workers call them, without a JVM."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from harebell.spark.source import QueueSource
from harebell.spark.writing.write_target import TaskResult

TEXTS = pa.schema([("value", pa.binary()), ("routing_key", pa.string())])
"""Bodies, and where they go."""


@contextmanager
def as_task(part: int, attempt: int, **properties: str) -> Iterator[None]:
    """This process is a task of Spark."""
    before = TaskContext._taskContext
    context = TaskContext()
    context._partitionId = part
    context._taskAttemptId = attempt
    context._localProperties = properties
    TaskContext._setTaskContext(context)
    try:
        yield
    finally:
        TaskContext._taskContext = before


def spark_type(kind: pa.DataType) -> DataType:
    """What Spark would call a type of Arrow, for those that the tests use."""
    if pa.types.is_struct(kind):
        found = StructType()
        for field in kind:
            found.add(field.name, spark_type(field.type))
        return found
    if pa.types.is_map(kind):
        return MapType(spark_type(kind.key_type), spark_type(kind.item_type))
    if pa.types.is_timestamp(kind):
        return TimestampType()
    simple = {
        "string": StringType(),
        "binary": BinaryType(),
        "int32": IntegerType(),
        "int64": LongType(),
        "bool": BooleanType(),
    }
    return simple[str(kind)]


class Query:
    """A streaming query that writes, as far as its sink can tell.

    Args:
        options: of the sink.
        schema: of its rows.
        query: its id.
        run: its run.
    """

    def __init__(
        self, options: dict[str, str], schema: pa.Schema, query: str = "q", run: str = "r"
    ) -> None:
        self._source = QueueSource(options)
        self._schema: Any = spark_type(pa.struct(list(schema)))
        self._properties = {"sql.streaming.queryId": query, "spark.jobGroup.id": run}
        self._attempts = 0

    def write(self, batch: int, part: int, batches: Iterable[pa.RecordBatch]) -> TaskResult:
        """Run one task, on an executor that gets its writer by pickle."""
        writer = self._carried()
        self._attempts += 1
        properties = self._properties | {"streaming.sql.batchId": str(batch)}
        with as_task(part, self._attempts, **properties):
            done: TaskResult = pickle.loads(pickle.dumps(writer.write(iter(batches))))
        return done

    def commit(self, batch: int, *done: TaskResult) -> None:
        """All tasks have ended: a writer that has seen none of them commits."""
        self._carried().commit(list(done), batch)

    def abort(self, batch: int, *done: TaskResult) -> None:
        """A task has failed for good."""
        self._carried().abort(list(done), batch)

    def run(self, batch: int, *parts: Iterable[pa.RecordBatch]) -> list[TaskResult]:
        """A whole micro-batch."""
        done = [self.write(batch, part, batches) for part, batches in enumerate(parts)]
        self.commit(batch, *done)
        return done

    def _carried(self) -> Any:
        return pickle.loads(pickle.dumps(self._source.streamWriter(self._schema, False)))
