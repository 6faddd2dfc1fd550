"""Sink: micro-batches as messages to an exchange, through the format `harebell`.

Rows with a column `value` are messages, and their columns that the format supports are used
unchanged: what a source has read can be written as it is. Any other row becomes a JSON
object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harebell.pipeline.run.frames import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VALUE = "value"
KEY = "routing_key"
EXPRESSION = "routingKeyExpression"
PARTS = (VALUE, KEY, "properties", "headers", "headers_raw")
"""The columns of rows that are messages."""
_NOT_IN_JSON = (KEY, "headers", "headers_raw", "properties")


def as_messages(frame: DataFrame, key: str | None) -> DataFrame:
    """Return rows in the columns of messages.

    Args:
        frame: the rows.
        key: an SQL expression for the routing key; None uses the column `routing_key`.
    """
    from pyspark.sql import functions as f

    if key:
        frame = frame.withColumn(KEY, f.expr(key).cast("string"))
    elif KEY not in frame.columns:
        frame = frame.withColumn(KEY, f.lit(""))
    if VALUE not in frame.columns:
        fields = [name for name in frame.columns if name not in _NOT_IN_JSON]
        value = f.to_json(f.struct(*(f.col(f"`{name}`") for name in fields)))
        frame = frame.withColumn(VALUE, value)
        if "properties" not in frame.columns:
            kind = f.struct(f.lit("application/json").alias("content_type"))
            frame = frame.withColumn("properties", kind)
    columns = [name for name in PARTS if name in frame.columns]
    return frame.select(*columns).withColumn(VALUE, f.col(VALUE).cast("binary"))


class ExchangeSink:
    """Publish micro-batches to an exchange.

    Args:
        exchange: the exchange; "" is the default exchange.
        transaction: permanent name of this sink of this query.
        url: of the broker.
        options: of the format, and the expression for the routing key.
    """

    def __init__(
        self, exchange: str, transaction: str, url: str | None, options: Mapping[str, str]
    ) -> None:
        self._key = options.get(EXPRESSION)
        self._transaction = transaction
        chosen = {name: value for name, value in options.items() if name != EXPRESSION}
        if url is not None:
            chosen.setdefault("url", url)
        self._options = {"exchange": exchange, **chosen}

    def write(self, frame: DataFrame, batch: int) -> int:
        """Publish a batch; return its number of rows."""
        # They are counted and written: without the cache the steps would run twice.
        messages = as_messages(frame, self._key).cache()
        try:
            count = messages.count()
            if count:
                writer = messages.write.format(FORMAT).options(**self._options).mode("append")
                # The broker stores the number with the messages, and publishes a repeated batch
                # once.
                writer = writer.option("txnAppId", self._transaction).option("txnVersion", batch)
                writer.save()
        finally:
            messages.unpersist()
        return count
