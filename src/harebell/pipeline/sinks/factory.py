"""Make the sinks of a running pipeline from its description."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harebell.pipeline.sinks.console import ConsoleSink
from harebell.pipeline.sinks.delta import DeltaSink, delta
from harebell.pipeline.sinks.exchange import ExchangeSink
from harebell.pipeline.sinks.iceberg import IcebergSink
from harebell.pipeline.sinks.iceberg_catalog import iceberg, place_of
from harebell.pipeline.sinks.known_table import KnownTable
from harebell.pipeline.sinks.parquet import ParquetSink
from harebell.pipeline.sinks.staging import key_of
from harebell.pipeline.sinks.table_form import form_of
from harebell.pipeline.spec.description import Description, Sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame


class BatchSink(Protocol):
    """Write micro-batches."""

    def write(self, frame: DataFrame, batch: int) -> int:
        """Write a batch, unless it was written before; return the number of rows written."""


def made(sink: Sink, pipeline: Description, query: str, say: Callable[[str], None]) -> BatchSink:
    """Return a sink.

    Args:
        sink: its description.
        pipeline: what the sink is a part of.
        query: the identity of Spark's query, stored in its checkpoint.
        say: prints a line.
    """
    transaction = f"{query}/{sink.name}"
    known = KnownTable(pipeline.checkpoint, key_of(transaction))
    form = form_of(sink.options, sink.partition_by)
    if sink.kind == "delta":
        return DeltaSink(Path(sink.target), transaction, known, form)
    if sink.kind == "iceberg":
        return IcebergSink(
            sink.target, place_of(sink.options), transaction, pipeline.checkpoint, form
        )
    if sink.kind == "parquet":
        compression = sink.options["compression"]
        return ParquetSink(Path(sink.target), transaction, known, sink.partition_by, compression)
    if sink.kind == "console":
        return ConsoleSink(sink.name, int(sink.options["rows"]), say)
    url = pipeline.sources[0].options.get("url")
    return ExchangeSink(sink.target, transaction, url, sink.options)


def check_libraries(pipeline: Description) -> None:
    """Import the libraries that the sinks need, before a message is read.

    Raises:
        PipelineError: which one is not installed.
    """
    needed = {"delta": delta, "iceberg": iceberg}
    for sink in pipeline.sinks:
        if sink.kind in needed:
            needed[sink.kind]()
