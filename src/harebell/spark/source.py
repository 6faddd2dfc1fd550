"""The data source `harebell`, as Spark finds it.

`pyspark_harebell` makes Spark find it without registration; where that package cannot be seen,
`spark.dataSource.register(QueueSource)` does the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

from harebell.base.names import nearest
from harebell.spark.options.sink_options import SINK_NAMES
from harebell.spark.options.source_options import (
    SOURCE_NAMES,
    OptionError,
    Options,
    for_batch,
    for_stream,
    parse,
)
from harebell.spark.options.values import unknown
from harebell.spark.reading.batch_source import FilteredBatchReader, QueueBatchReader
from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.schema import message_schema, with_body
from harebell.spark.writing.sink import SinkSource


class QueueSource(SinkSource):
    """Queues as streams of messages.

    Args:
        options: what the user gave (`harebell.spark.options.source_options`).
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        names = SOURCE_NAMES | SINK_NAMES
        if "provider" in options and "owner" in options:
            raise OptionError(
                "Spark does not tell a Python source the options of a table when it is read: use "
                "CREATE TEMPORARY VIEW ... USING harebell OPTIONS (...) instead of CREATE TABLE"
            )
        for name in options:
            if name.lower() == "path":
                raise OptionError(
                    "queues and messages have no path: call load(), save() and start() without "
                    'one, and say which queue by .option("queue", ...), or which exchange by '
                    '.option("exchange", ...)'
                )
            # Spark does not say yet whether it is to read or to write. Each side checks its own
            # names, and lists them.
            if name.lower() not in names and nearest(name.lower(), names):
                raise OptionError(unknown(name, names))

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "harebell"

    def schema(self) -> StructType | str:
        """All columns of a message that were not excluded."""
        requested = self._asked
        columns = message_schema(
            properties=requested.include_properties,
            headers=requested.include_headers,
            json=requested.include_headers_json,
            raw=requested.include_raw_headers,
        )
        return with_body(columns, requested)

    def streamReader(self, schema: StructType) -> QueueStreamReader:  # noqa: N802 - Spark's name
        """A reader for the columns that the user wants."""
        return QueueStreamReader(for_stream(self._asked), schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader that looks at what is there and leaves it there."""
        requested = for_batch(self._asked)
        return (
            FilteredBatchReader(requested, schema)
            if requested.pushdown
            else (QueueBatchReader(requested, schema))
        )

    @property
    def _asked(self) -> Options:
        # Not before it is asked for: Spark makes a source to write with, too.
        return parse(self.options)
