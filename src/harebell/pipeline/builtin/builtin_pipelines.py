"""The pipelines of `archive`, `mirror` and `stats`, described as a file would.

archive   queue, stream or exchange -> partitioned Parquet or Delta
mirror    a queue of one broker -> an exchange or queue of another
stats     the rates of a queue in windows of time -> the console, or a Delta table
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harebell.base.row_columns import FIELDS
from harebell.client import blocking
from harebell.client.errors import AMQPError
from harebell.client.url import URL
from harebell.pipeline.builtin.queue_reports import flow
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks.exchange import EXPRESSION
from harebell.pipeline.spec.description import (
    SOURCE,
    Description,
    Sink,
    Source,
    Step,
    Trigger,
    Watermark,
)
from harebell.pipeline.spec.values import interval_of, named, quoted

LAKES = ("delta", "parquet")
PERIODS = {
    "day": "to_date(timestamp) AS date",
    "hour": "to_date(timestamp) AS date, hour(timestamp) AS hour",
    "none": "",
}
_PARTITIONS = {"day": ("date",), "hour": ("date", "hour"), "none": ()}
_WHOLE = {"startingOffsets": "earliest"}
"""Source options: every message of a queue; a new query over a stream would begin at its end."""
_HOME = "_pipelines"
_SHOWN_ROWS = 1_000


def archive(
    url: str,
    queue: str,
    directory: Path,
    *,
    kind: str = LAKES[0],
    period: str = "day",
    trigger: Trigger | None = None,
    compact_every: int = 0,
) -> Description:
    """Write every message of a queue to a table.

    Args:
        url: of the broker.
        queue: the name of the queue that is read.
        directory: directory of the table.
        kind: one of `LAKES`.
        period: one of `PERIODS`: the unit of the table's partitions.
        trigger: when; None processes the present messages and ends.
        compact_every: micro-batches after which small files of a Delta table are merged.
    """
    columns = f", {PERIODS[period]}" if PERIODS[period] else ""
    step = Step("archived", sql=f"SELECT *{columns} FROM {SOURCE}")
    directory = directory.resolve()
    options = {"compactEvery": str(compact_every), "compression": "zstd"}
    sink = Sink("lake", kind, step.name, str(directory), "", options, _PARTITIONS[period])
    name = f"archive-{named(queue)}"
    return Description(
        name=name,
        file=None,
        directory=directory,
        sources=(Source(SOURCE, {"url": url, "queue": queue} | _WHOLE),),
        steps=(step,),
        sinks=(sink,),
        trigger=trigger or Trigger(),
        checkpoint=directory / _HOME / name,
    )


def mirror(
    source: str,
    queue: str,
    target: str,
    *,
    exchange: str,
    to_queue: str | None,
    checkpoint: Path,
    trigger: Trigger | None = None,
) -> Description:
    """Publish every message of a queue to another broker, unchanged.

    Headers are copied as bytes, so that they keep their types, and transient messages stay
    transient. The property `user_id` is kept only if it is the user of the target: brokers refuse
    any other.

    Args:
        source: the broker to read from.
        queue: the name of the queue that is read.
        target: the broker to publish to.
        exchange: the exchange; each message keeps its routing key.
        to_queue: one queue for all messages, instead of an exchange.
        checkpoint: directory of the pipeline's progress.
        trigger: when; None processes the present messages and ends.
    """
    # Each row has its own delivery mode; this is only for those without one.
    options = {"url": target, "persistent": "false"}
    if to_queue is not None:
        options[EXPRESSION] = quoted(to_queue)
    name = f"mirror-{named(queue)}"
    columns = {"includeHeaders": "false", "includeRawHeaders": "true"}
    login = quoted(URL.parse(target).username)
    values = {name: f"properties.{name}" for name in FIELDS}
    values["user_id"] = f"IF(properties.user_id = {login}, properties.user_id, NULL)"
    fields = ", ".join(f"'{name}', {value}" for name, value in values.items())
    step = Step(
        "messages",
        sql=f"SELECT value, routing_key, headers_raw, named_struct({fields}) AS properties "
        f"FROM {SOURCE}",
    )
    return Description(
        name=name,
        file=None,
        directory=checkpoint.resolve(),
        sources=(Source(SOURCE, {"url": source, "queue": queue} | _WHOLE | columns),),
        steps=(step,),
        sinks=(Sink("mirror", "exchange", step.name, "" if to_queue else exchange, "", options),),
        trigger=trigger or Trigger(),
        checkpoint=checkpoint.resolve() / name,
    )


def stats(
    url: str,
    queue: str,
    *,
    seconds: float,
    keys: int | None,
    trigger: Trigger,
    checkpoint: Path,
    directory: Path | None = None,
) -> Description:
    """Report the message rates of a queue; nothing is consumed.

    Args:
        url: of the broker.
        queue: the name of the queue, of which nothing is taken.
        seconds: the length of a window.
        keys: show this many top routing keys of each window in place of its rates.
        trigger: when.
        checkpoint: directory of the pipeline's progress.
        directory: of a Delta table for complete windows; None shows every window on the console
            whenever it changes.
    """
    options = {"url": url, "queue": queue, "delivery": "peek"} | _WHOLE
    step = Step("stats", sql=flow(SOURCE, seconds, keys), stateful=True)
    if directory is None:
        sink = Sink("stats", "console", step.name, "", "", {"rows": str(_SHOWN_ROWS)})
    else:
        sink = Sink(
            "stats", "delta", step.name, str(directory.resolve()), "", {"compactEvery": "20"}
        )
    name = f"stats-{named(queue)}"
    return Description(
        name=name,
        file=None,
        directory=checkpoint.resolve(),
        sources=(Source(SOURCE, options, watermark=Watermark("timestamp", interval_of(seconds))),),
        steps=(step,),
        sinks=(sink,),
        trigger=trigger,
        checkpoint=checkpoint.resolve() / name,
        mode="update" if directory is None else "append",
    )


def tapped(url: URL, exchange: str, keys: Sequence[str]) -> str:
    """Return the durable queue bound to an exchange; declare it if it does not exist.

    Raises:
        PipelineError: it cannot be declared.
    """
    queue = f"archive.{exchange}"
    try:
        with blocking.connect(url) as connection:
            channel = connection.channel()
            channel.declare_queue(queue, durable=True)
            for key in keys:
                channel.bind_queue(queue, exchange, key)
    except AMQPError as error:
        raise PipelineError(str(error)) from None
    return queue
