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
    """Where micro-batches go."""

    def write(self, frame: DataFrame, batch: int) -> int:
        """Take a batch, unless it was taken before; how many rows were taken."""


def made(sink: Sink, pipeline: Description, query: str, say: Callable[[str], None]) -> BatchSink:
    """A sink, ready for micro-batches.

    Args:
        sink: what is said of it.
        pipeline: its pipeline.
        query: the identity of Spark's query, which its checkpoint keeps.
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
