"""Replay rows of a table to an exchange: by time, by SQL, at a rate, in the original order.

    lake --where--> rows by timestamp and offset --confirmed publishes--> exchange

One connection publishes in order and waits for confirms. An interrupted replay continues with the
first message that was not confirmed (`skip`); some messages after it may have been published
already, and are published again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harebell.client import blocking
from harebell.client.errors import AMQPError, BulkPublishFailed
from harebell.client.message import Message
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.run.failures import reason_of, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ORDER = ("timestamp", "offset")
_TEXTS = (
    *("content_type", "content_encoding", "correlation_id", "reply_to", "message_id", "type"),
    "app_id",
)
_NEEDED = ("value", "routing_key", "properties", "headers")
_STAMP = "x-replayed-at"
_ORIGIN = "x-original-"


@dataclass(frozen=True)
class Choice:
    """The rows to replay.

    Args:
        where: an SQL condition; "" for all.
        since: from this time on, in SQL's format; "" from the first.
        until: before this time; "" to the last.
        skip: number of leading rows to skip, because they were published before.
    """

    where: str = ""
    since: str = ""
    until: str = ""
    skip: int = 0


def chosen(lake: DataFrame, choice: Choice) -> DataFrame:
    """Return the rows, in their order.

    Raises:
        PipelineError: the table has no messages, or the condition is invalid.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    if "value" not in lake.columns:
        raise PipelineError(
            f"the table has no column value, so its rows are no messages: {', '.join(lake.columns)}"
        )
    kind = lake.schema["value"].dataType.simpleString()
    if kind not in ("binary", "string"):
        raise PipelineError(
            f"the table's column value is {kind}, so its rows are no messages: bodies are binary "
            "or string"
        )
    try:
        rows = lake.filter(choice.where) if choice.where else lake
        if choice.since:
            rows = rows.filter(f.col("timestamp") >= f.lit(choice.since).cast("timestamp"))
        if choice.until:
            rows = rows.filter(f.col("timestamp") < f.lit(choice.until).cast("timestamp"))
        order = _order(rows)
        rows = rows.orderBy(*order) if order else rows
        return rows.offset(choice.skip) if choice.skip else rows
    except PySparkException as error:
        raise PipelineError(reason_of(error)) from None


def _order(rows: DataFrame) -> list[Any]:
    """Return the order of the rows; rows of one time and offset are ordered by what they are.

    So an interrupted replay finds them in the same order again.
    """
    from pyspark.sql import functions as f

    order: list[Any] = [name for name in _ORDER if name in rows.columns]
    if order:
        # Offsets count from 0 in each queue of a table.
        order += [name for name in ("queue", "routing_key") if name in rows.columns]
        order.append(f.xxhash64("value"))
    return order


def messages_of(rows: DataFrame, routing_key: str | None) -> DataFrame:
    """Return rows in the columns of messages, with their original times.

    The property `timestamp` is that of the publisher, else the time when the broker had received
    the message. Headers say where the message was: `x-original-timestamp`, `x-original-queue` and
    `x-original-offset`.

    Args:
        rows: the rows of a table.
        routing_key: for all rows; None uses the column `routing_key`.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    messages = rows
    if routing_key is not None:
        messages = messages.withColumn("routing_key", f.lit(routing_key))
    elif "routing_key" not in messages.columns:
        messages = messages.withColumn("routing_key", f.lit(""))
    else:
        messages = messages.withColumn("routing_key", f.coalesce("routing_key", f.lit("")))
    kind = messages.schema["properties"].dataType if "properties" in messages.columns else None
    given = kind.names if isinstance(kind, StructType) else []
    fields = [f.col(f"properties.{name}").alias(name) for name in _TEXTS if name in given]
    mode = f.col("properties.delivery_mode") if "delivery_mode" in given else f.lit(None)
    fields.append(f.coalesce(mode, f.lit(2)).cast("int").alias("delivery_mode"))
    if "priority" in given:
        fields.append(f.col("properties.priority").cast("int").alias("priority"))
    times = [f.col("properties.timestamp")] if "timestamp" in given else []
    times += [f.col("timestamp")] if "timestamp" in messages.columns else []
    if times:
        fields.append(f.coalesce(*times).cast("timestamp").alias("timestamp"))
    messages = messages.withColumn("properties", f.struct(*fields))
    return messages.withColumn("headers", _headers(messages)).withColumn(
        "value", f.col("value").cast("binary")
    )


def _headers(rows: DataFrame) -> Any:
    """Return the headers of the rows, with those about their origin."""
    from pyspark.sql import functions as f

    texts = {name: f.col(name).cast("string") for name in ("queue", "offset")}
    texts["timestamp"] = f.date_format(
        f.to_utc_timestamp("timestamp", f.current_timezone()), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
    )
    pairs: list[Any] = []
    for name, text in texts.items():
        if name in rows.columns:
            pairs += [f.lit(f"{_ORIGIN}{name}"), text]
    pairs += [f.lit(_STAMP), f.lit(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))]
    added = f.create_map(*pairs)
    if "headers" not in rows.columns:
        return added
    own = f.coalesce(f.col("headers"), f.create_map().cast("map<string,string>"))
    names = [*(f"{_ORIGIN}{name}" for name in texts), _STAMP]
    return f.map_concat(f.map_filter(own, lambda name, _: ~name.isin(names)), added)


def replay(
    rows: DataFrame,
    url: URL,
    exchange: str,
    routing_key: str | None,
    rate: float,
    progress: Callable[[int], None],
    skipped: int = 0,
) -> int:
    """Publish rows; return the number of confirmed ones.

    Args:
        rows: what to publish.
        url: of the broker.
        exchange: the name of the exchange; "" is the default exchange.
        routing_key: for all rows; None uses the routing key of each row.
        rate: maximum messages per second; 0 for no limit.
        progress: called now and then with the number of confirmed messages.
        skipped: number of rows that were skipped before these.

    Raises:
        PipelineError: some rows were not confirmed; the text names the `--skip` to continue with.
    """
    done = 0

    def report(confirmed: int) -> None:
        nonlocal done
        done = confirmed
        progress(confirmed)

    try:
        with blocking.connect(url) as connection:
            messages = _paced(_messages(messages_of(rows, routing_key)), rate)
            return connection.channel().publish_many(
                messages, exchange=exchange, mandatory=True, progress=report
            )
    except BulkPublishFailed as error:
        # Rows after the first failure count as confirmed, too, or were never sent.
        position, reason = error.failures[0]
        raise PipelineError(
            f"{reason}; go on with --skip {skipped + position} when that is mended"
        ) from None
    except spark_errors() as error:
        raise PipelineError(f"{reason_of(error)}; go on with --skip {skipped + done}") from None
    except AMQPError as error:
        raise PipelineError(f"{error}; go on with --skip {skipped + done}") from None


def _messages(rows: DataFrame) -> Iterator[Message]:
    for row in _needed(rows).toLocalIterator():
        fields = row.asDict(recursive=True)
        body = bytes(fields["value"] or b"")
        yield Message(body, routing_key=fields["routing_key"], **_properties(fields))


def _needed(rows: DataFrame) -> DataFrame:
    """Return the columns that become a message; the time in AMQP's seconds since 1970.

    A Python datetime would be in the zone of this process, and ends with the year 9999.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType, TimestampType

    data_frame = rows.select(*(name for name in _NEEDED if name in rows.columns))
    kind = data_frame.schema["properties"].dataType if "properties" in data_frame.columns else None
    if not isinstance(kind, StructType) or "timestamp" not in kind.names:
        return data_frame
    if not isinstance(kind["timestamp"].dataType, TimestampType):
        return data_frame
    seconds = f.unix_seconds(f.col("properties.timestamp"))
    return data_frame.withColumn("properties", f.col("properties").withField("timestamp", seconds))


def _properties(fields: dict[str, Any]) -> dict[str, Any]:
    given = fields.get("properties") or {}
    properties = {name: given[name] for name in _TEXTS if given.get(name) is not None}
    for name in ("delivery_mode", "priority"):
        if given.get(name) is not None:
            properties[name] = int(given[name])
    properties.setdefault("delivery_mode", 2)
    seconds = given.get("timestamp")
    if isinstance(seconds, int) and seconds >= 0:
        properties["timestamp"] = seconds
    return {**properties, "headers": fields["headers"]}


def _paced(messages: Iterator[Message], rate: float) -> Iterator[Message]:
    """Yield rows at the given rate."""
    began = time.monotonic()
    for number, message in enumerate(messages):
        ahead = number / rate - (time.monotonic() - began) if rate else 0.0
        if ahead > 0:
            time.sleep(ahead)
        yield message
