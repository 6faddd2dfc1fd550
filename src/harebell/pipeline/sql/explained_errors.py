"""Errors of Spark about a statement, with the place in it and the nearest right name.

Spark sees views in place of `queue('orders')`, so its own places are shifted. The fragment that it
blames is looked up in the statement as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harebell.base.names import nearest
from harebell.client import blocking
from harebell.client.errors import AMQPError
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.run.failures import reason_of
from harebell.pipeline.sql.selections import place_in
from harebell.spark.catalog import CATALOG

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

_NO_QUEUE = re.compile(r"there is no queue '(?P<name>[^']+)'")
_ROUTINE = re.compile(r"routine `(?P<name>\w+)`")
_VIEW = re.compile(r"table or view `(?P<name>[^`]+)` cannot be found", re.I)
# Without such a catalog Spark takes all of the name for one of its own catalog.
_CATALOG = re.compile(
    r"(?:single-part namespace, but got identifier|table or view) "
    r"`(?P<catalog>[^`]+)`\.`[^`]+`\.`[^`]+`"
)
_SPARK_CATALOG = "spark_catalog"
_PAGES = 100
"""Most pages of queue names that are asked for a suggestion."""


def explained(error: PySparkException, sql: str, spark: SparkSession) -> PipelineError:
    """Return an error of Spark as one sentence.

    Args:
        error: of Spark.
        sql: the statement as the user wrote it.
        spark: the session, which knows its functions.
    """
    reason = reason_of(error)
    routine, view = _ROUTINE.search(reason), _VIEW.search(reason)
    catalog = _CATALOG.search(reason)
    if routine is not None:
        reason = f"there is no function {routine['name']}{_near_function(routine['name'], spark)}"
    elif catalog is not None and catalog["catalog"] not in (CATALOG, _SPARK_CATALOG):
        reason = _no_catalog(catalog["catalog"])
    elif view is not None:
        name = view["name"]
        reason = f"there is no table {name}: the messages of a queue are queue({name!r})"
    fragment = _fragment(error)
    offset = sql.find(fragment) if fragment else -1
    return PipelineError(f"{place_in(sql, offset)}: {reason}" if offset >= 0 else reason)


def _no_catalog(name: str) -> str:
    near = nearest(name.lower(), [CATALOG, _SPARK_CATALOG])
    if near is not None:
        return f"there is no catalog {name}: did you mean {near}?"
    return f"there is no catalog {name}: queues are tables of {CATALOG}.default"


def _fragment(error: PySparkException) -> str:
    """Return the text of the statement that Spark blames; "" if it names none."""
    from pyspark.errors import QueryContextType

    for context in error.getQueryContext() or ():
        # Data frames have contexts, too, without any text.
        if context.contextType() == QueryContextType.SQL:
            return str(context.fragment())
    return ""


def _near_function(name: str, spark: SparkSession) -> str:
    known = [str(row[0]) for row in spark.sql("SHOW FUNCTIONS").collect()]
    near = nearest(name.lower(), known)
    return "" if near is None else f": did you mean {near}?"


def with_near_queue(sentence: str, url: URL) -> str:
    """Add the nearest queue to a sentence about one that does not exist, if the broker tells."""
    match = _NO_QUEUE.search(sentence)
    if match is None:
        return sentence
    near = nearest(match["name"], _queues(url))
    return sentence if near is None else f"{sentence}; did you mean {near!r}?"


@contextmanager
def near_queues_named(url: URL) -> Iterator[None]:
    """Add the nearest queue to errors about one that does not exist."""
    try:
        yield
    except PipelineError as error:
        sentence = with_near_queue(str(error), url)
        if sentence == str(error):
            raise
        raise PipelineError(sentence) from error


def _queues(url: URL) -> list[str]:
    names: list[str] = []
    try:
        with blocking.connect(url) as connection:
            channel = connection.channel()
            for _ in range(_PAGES):
                page, more = channel.queue_names(names[-1] if names else "")
                names += page
                if not more:
                    break
    except AMQPError:
        # RabbitMQ has no such request; the error stands without a suggestion.
        return []
    return names
