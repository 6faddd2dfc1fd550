"""The data source `harebell`, as Spark finds it.

`pyspark_harebell` makes Spark find it without registration; where that package cannot be seen,
`spark.dataSource.register(QueueSource)` does the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

from harebell.spark.intake import SourceError
from harebell.spark.options import SOURCE_NAMES, OptionError, Options, parse
from harebell.spark.schema import message_schema
from harebell.spark.sink import SinkSource
from harebell.spark.sink_options import SINK_NAMES, unknown
from harebell.spark.stream_source import QueueStreamReader


class QueueSource(SinkSource):
    """Queues as streams of messages.

    Args:
        options: what the user gave (`harebell.spark.options`).
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        # Only their names: Spark does not say yet whether it is to read or to write.
        names = SOURCE_NAMES | SINK_NAMES
        for name in options:
            if name.lower() not in names:
                raise OptionError(unknown(name, names))

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "harebell"

    def schema(self) -> StructType:
        """All columns of a message that were not excluded."""
        return message_schema(
            properties=self._asked.include_properties, headers=self._asked.include_headers
        )

    def streamReader(self, schema: StructType) -> QueueStreamReader:  # noqa: N802 - Spark's name
        """A reader for the columns that the user wants."""
        return QueueStreamReader(self._asked, schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """There is none: a batch read could never acknowledge what it took."""
        raise SourceError(
            "a queue cannot be read with spark.read, which could not acknowledge messages: use "
            "spark.readStream with .trigger(availableNow=True), which ends when the queue is empty"
        )

    @property
    def _asked(self) -> Options:
        # Not before it is asked for: Spark makes a source to write with, too.
        return parse(self.options)
