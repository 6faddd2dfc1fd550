"""The data source `harebell`, as Spark finds it.

`pyspark_harebell` makes Spark find it without registration; where that package cannot be seen,
`spark.dataSource.register(QueueSource)` does the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from harebell.spark.intake import SourceError
from harebell.spark.options import Options, check_names, for_stream, parse
from harebell.spark.schema import message_schema, with_body
from harebell.spark.stream_source import QueueStreamReader


class QueueSource(DataSource):
    """Queues as streams of messages.

    Args:
        options: what the user gave (`harebell.spark.options`).
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        # Their values are read later: Spark makes a source to write with, too.
        check_names(options)

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "harebell"

    def schema(self) -> StructType | str:
        """All columns of a message that were not excluded."""
        asked = self._asked()
        columns = message_schema(
            properties=asked.include_properties,
            headers=asked.include_headers,
            json=asked.include_headers_json,
            raw=asked.include_raw_headers,
        )
        return with_body(columns, asked)

    def streamReader(self, schema: StructType) -> QueueStreamReader:  # noqa: N802 - Spark's name
        """A reader for the columns that the user wants."""
        return QueueStreamReader(for_stream(self._asked()), schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """There is none: a batch read could never acknowledge what it took."""
        raise SourceError(
            "a queue cannot be read with spark.read, which could not acknowledge messages: use "
            "spark.readStream with .trigger(availableNow=True), which ends when the queue is empty"
        )

    def _asked(self) -> Options:
        return parse(self.options)
