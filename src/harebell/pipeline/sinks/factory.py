"""Make the sinks of a running pipeline from its description."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harebell.pipeline.sinks.console import ConsoleSink
from harebell.pipeline.sinks.delta import DeltaSink
from harebell.pipeline.sinks.exchange import ExchangeSink
from harebell.pipeline.sinks.parquet import ParquetSink
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
        pipeline: its pipeline.
        query: the identity of Spark's query, stored in its checkpoint.
        say: prints a line.
    """
    transaction = f"{query}/{sink.name}"
    if sink.kind == "delta":
        every = int(sink.options.get("compactEvery", "0"))
        return DeltaSink(Path(sink.target), transaction, sink.partition_by, every)
    if sink.kind == "parquet":
        compression = sink.options["compression"]
        return ParquetSink(Path(sink.target), transaction, sink.partition_by, compression)
    if sink.kind == "console":
        return ConsoleSink(sink.name, int(sink.options["rows"]), say)
    url = pipeline.sources[0].options.get("url")
    return ExchangeSink(sink.target, transaction, url, sink.options)
