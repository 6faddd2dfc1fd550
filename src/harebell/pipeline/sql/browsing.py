"""Read the messages of a queue as a data frame, without consuming them.

A Harebell that serves ranges of its logs (class bulk) is asked for them, which changes nothing.
Of any other broker messages are taken and given back: they are marked as redelivered then, and
where the broker counts deliveries this is one.
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
    """Whether a broker shows its queues without giving messages away.

    Raises:
        PipelineError: it cannot be asked.
    """
    try:
        with blocking.connect(url) as connection:
            told = connection.server_properties.get(_EXTENSIONS)
    except AMQPError as error:
        raise PipelineError(str(error)) from None
    return isinstance(told, dict) and _BULK in told


def browse(spark: SparkSession, address: str, queue: str) -> DataFrame:
    """What is in a queue now.

    Args:
        spark: the session.
        address: of the broker.
        queue: the queue.

    Raises:
        PipelineError: there is no such queue, or it cannot be looked at.
    """
    url = URL.parse(address)
    if serves_ranges(url):
        return spark.read.format(FORMAT).option("url", address).option("queue", queue).load()
    with take_snapshot(url, queue) as taken:
        return spark.createDataFrame(taken.table())
