"""The data source `harebell`, registered with Spark.

Spark finds it through `pyspark_harebell`; if that package is not installed,
`spark.dataSource.register(QueueSource)` registers it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StringType, StructField, StructType

from harebell.base.errors import HarebellError
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
from harebell.spark.plain_errors import without_traceback
from harebell.spark.reading.batch_source import FilteredBatchReader, QueueBatchReader
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.queue_lookup import find_queues
from harebell.spark.reading.refused_reader import RefusedReader
from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.schema import columns_of
from harebell.spark.writing.sink import SinkSource

LISTING = "harebell.catalog.tables"
"""The option with which the class of the catalog, in Java, asks for the queues."""


class QueueSource(SinkSource):
    """Queues as streams of messages.

    Args:
        options: the options of the user (`harebell.spark.options.source_options`).
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        names = SOURCE_NAMES | SINK_NAMES
        # Properties that Spark's catalog adds to a table, and hands over instead of its options.
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
            # Spark does not pass yet whether it will read or write. Each side checks its own names,
            # and lists them in errors.
            if name.lower() not in names and nearest(name.lower(), names):
                raise OptionError(unknown(name, names))

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "harebell"

    @without_traceback
    def schema(self) -> StructType | str:
        """Return all columns of a message that were not excluded.

        The catalog asks for the queues in the only way that Spark has for it: as names of columns.
        """
        if LISTING in self.options:
            return _listed(self.options)
        return columns_of(self._parsed_options)

    def streamReader(  # noqa: N802 - Spark's name
        self, schema: StructType
    ) -> DataSourceStreamReader:
        """Return a stream reader for the selected columns."""
        try:
            return QueueStreamReader(for_stream(self._parsed_options), schema)
        except HarebellError as error:
            return RefusedReader(error)

    @without_traceback
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch reader, which does not consume."""
        requested = for_batch(self._parsed_options)
        return (
            FilteredBatchReader(requested, schema)
            if requested.pushdown
            else (QueueBatchReader(requested, schema))
        )

    @property
    def _parsed_options(self) -> Options:
        # Parsed on demand: Spark also makes a source for writing.
        return parse(self.options)


def _listed(given: Mapping[str, str]) -> StructType:
    """Return a schema whose columns have the names of the queues that the user may read.

    Args:
        given: the options; that of the listing has the name of one queue, or "" for all.
    """
    named = given[LISTING]
    chosen = {name: value for name, value in given.items() if name != LISTING}
    options = parse({**chosen, "queuePattern": ".*"})
    connection = BrokerConnection(options.url, options.fetch_timeout, "spark: catalog")
    try:
        names = find_queues(connection, options, some=False)
    finally:
        connection.abandon()
    return StructType([StructField(name, StringType()) for name in names if named in ("", name)])
