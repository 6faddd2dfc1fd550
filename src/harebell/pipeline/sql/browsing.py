"""Read the messages of a queue as a data frame, without consuming them.

From a Harebell that serves position ranges (class bulk) these are read, which changes nothing.
From any other broker messages are taken and requeued: they are marked as redelivered, and a
delivery count, if the broker has one, grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.client import blocking
from harebell.client.errors import AMQPError
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.run.frames import FORMAT
from harebell.pipeline.sql.queue_snapshot import take_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BULK = "bulk"
_EXTENSIONS = "harebell"


def serves_ranges(url: URL) -> bool:
    """True if a broker serves messages without delivering them.

    Raises:
        PipelineError: it cannot be reached.
    """
    try:
        with blocking.connect(url) as connection:
            extensions = connection.server_properties.get(_EXTENSIONS)
    except AMQPError as error:
        raise PipelineError(str(error)) from None
    return isinstance(extensions, dict) and _BULK in extensions


def browse(spark: SparkSession, address: str, queue: str) -> DataFrame:
    """Return the present messages of a queue.

    Args:
        spark: the session.
        address: of the broker.
        queue: the name of the queue, of which nothing is taken.

    Raises:
        PipelineError: the queue does not exist, or cannot be read.
    """
    url = URL.parse(address)
    if serves_ranges(url):
        return spark.read.format(FORMAT).option("url", address).option("queue", queue).load()
    with take_snapshot(url, queue) as taken:
        return spark.createDataFrame(taken.table())
