"""`harebell sql`: run the statements of `verbs` on a Spark session and a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.run.failures import reason_of
from harebell.pipeline.sinks.exchange import ExchangeSink
from harebell.pipeline.spec.description import Route
from harebell.pipeline.sql.browsing import browse
from harebell.pipeline.sql.explained_errors import explained
from harebell.pipeline.sql.inserts import InsertStatement, key_options
from harebell.pipeline.sql.queue_snapshot import (
    OFFSET,
    Change,
    origin_of,
    take_snapshot,
)
from harebell.pipeline.sql.selections import SelectStatement
from harebell.pipeline.sql.tables import lake_of
from harebell.pipeline.sql.targets import check_target
from harebell.pipeline.sql.verbs import SettleStatement
from harebell.spark.writing.advice import BAD_ROW_MEND, NO_ROUTE_MEND

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    Select = Callable[[SettleStatement, pa.Table], Iterable[Sequence[Any]]]

_TAKEN = "taken"
_MENDS = {
    NO_ROUTE_MEND: "Bind a queue to the exchange, or correct the routing key: "
    "INSERT INTO exchange('name', 'key')",
    BAD_ROW_MEND: "leave such rows out with a WHERE",
}
"""What to do in a statement, which has no options, by the advice for a data frame."""


@dataclass(frozen=True)
class Settled:
    """The result of a verb.

    Args:
        looked: number of messages in the queue.
        settled: number of them that were deleted, moved or retried.
    """

    looked: int
    settled: int


def select(spark: SparkSession, selection: SelectStatement, url: str, directory: Path) -> DataFrame:
    """Return a query as a data frame; nothing is consumed.

    Raises:
        PipelineError: Spark cannot parse it, or a table does not exist.
    """
    from pyspark.errors import PySparkException

    for table in selection.tables:
        if table.kind == "lake":
            frame = lake_of(spark, table.name, directory)
        else:
            frame = browse(spark, url, table.name)
        frame.createOrReplaceTempView(table.view)
    try:
        if selection.explains:
            # In a plan, Spark tells a mistake in place of the plan.
            spark.sql(selection.explains)
        return spark.sql(selection.sql)
    except PySparkException as error:
        raise explained(error, selection.written or selection.sql, spark) from None


def drop_views(spark: SparkSession, selection: SelectStatement) -> None:
    """Drop the views of a query that has ended, so that SHOW TABLES does not list them.

    Not before: over Spark Connect a data frame looks for its views when it runs.
    """
    from pyspark.errors import PySparkException

    for table in selection.tables:
        # Its session may have ended, and takes the views along.
        with suppress(PySparkException):
            spark.catalog.dropTempView(table.view)


def insert(spark: SparkSession, insertion: InsertStatement, url: str, directory: Path) -> int:
    """Publish the rows of a query; return their number. All are published, or none.

    Raises:
        PipelineError: it failed, or the target does not exist.
    """
    from pyspark.errors import PySparkException

    target = insertion.target
    check_target(target, URL.parse(url))
    # A name of its own: a repeated statement is meant to publish again.
    sink = ExchangeSink(target.exchange, f"sql-{uuid4().hex}", url, key_options(target))
    try:
        return sink.write(select(spark, insertion.query, url, directory), 0)
    except PySparkException as error:
        reason = reason_of(error)
        for option, statement in _MENDS.items():
            reason = reason.replace(option, statement)
        raise PipelineError(reason) from None
    finally:
        drop_views(spark, insertion.query)


def settle(spark: SparkSession, settlement: SettleStatement, url: URL) -> Settled:
    """Apply a verb to the messages that Spark selects; as `settle_selected`."""
    return settle_selected(settlement, url, partial(selected_by_spark, spark))


def settle_selected(settlement: SettleStatement, url: URL, select: Select) -> Settled:
    """Apply a verb to the messages that its WHERE selects.

    Args:
        settlement: the statement.
        url: of the broker.
        select: returns what the statement selects of messages, in their order: the offset, and
            what SET makes of the body and of the routing key.

    Raises:
        PipelineError: it failed; other messages stay in the queue.
    """
    with take_snapshot(url, settlement.queue) as taken:
        if not len(taken):
            return Settled(0, 0)
        changes = [_change(row, settlement.changes) for row in select(settlement, taken.table())]
        target = None
        if settlement.target is not None:
            route = settlement.target
            target = lambda _message: route  # noqa: E731 - one line, and named
        elif settlement.verb == "RETRY":
            target = origin_of
        retry = settlement.verb == "RETRY"
        return Settled(len(taken), taken.settle(changes, target, retry=retry))


def selected_by_spark(
    spark: SparkSession, settlement: SettleStatement, messages: pa.Table
) -> list[tuple[Any, ...]]:
    """Return what a statement selects of messages, in their order.

    Raises:
        PipelineError: it is wrong, or failed.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    frame = spark.createDataFrame(messages)
    columns = [f.col(OFFSET)]
    value, key = settlement.changes.get("value"), settlement.changes.get("routing_key")
    columns.append(f.expr(value).cast("binary") if value else f.lit(None).cast("binary"))
    columns.append(f.expr(key).cast("string") if key else f.lit(None).cast("string"))
    try:
        rows = frame.filter(settlement.where).select(*columns).orderBy(OFFSET).collect()
    except PySparkException as error:
        raise PipelineError(reason_of(error)) from None
    return [tuple(row) for row in rows]


def _change(row: Sequence[Any], changes: dict[str, str]) -> Change:
    offset, value, key = row
    for name, changed in (("value", value), ("routing_key", key)):
        if name in changes and changed is None:
            raise PipelineError(
                f"SET {name} gives null for message {offset}: nothing was settled; use "
                f"coalesce({changes[name]}, {name})"
            )
    return Change(int(offset), None if value is None else bytes(value), key)


def route_text(route: Route | None) -> str:
    """Describe where messages were published to, in a sentence."""
    return "where they came from" if route is None else str(route)
