"""The description of a pipeline: the values of its file, without lines, YAML or Spark.

Built-in pipelines (`archive`, `mirror`, `stats`) make a `Description` without a file; they run the
same way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = "source"
"""The default name of a source, and of the view that the first step reads."""
FORMATS = ("binary", "text", "json")
ONE, MANY = "one", "many"
"""How many JSON objects a body has."""
ON_ERROR = ("fail", "drop", "dead-letter")
MODES = ("append", "update", "complete")
_READ_FROM = ("queue", "queues", "queuePattern", "superStream", "exchange", "deadLettersOf")
"""The options of a source that say what is read."""


@dataclass(frozen=True)
class Route:
    """An exchange and a routing key to publish with.

    Args:
        exchange: the exchange; "" is the default exchange, whose routing keys are queue names.
        routing_key: the routing key; None uses the column `routing_key`.
    """

    exchange: str
    routing_key: str | None = None

    def __str__(self) -> str:
        if not self.exchange and self.routing_key:
            return f"queue {self.routing_key}"
        return f"exchange {self.exchange}" if self.exchange else "the default exchange"


@dataclass(frozen=True)
class Body:
    """How to decode bodies.

    Args:
        format: one of `FORMATS`.
        schema: the columns of a JSON body, as DDL.
        on_error: one of `ON_ERROR`: what to do with an invalid body.
        dead_letter: where to publish messages with invalid bodies.
        objects: `ONE` JSON object per body, or `MANY`, which become a row each.
    """

    format: str = "binary"
    schema: str = ""
    on_error: str = "fail"
    dead_letter: Route | None = None
    objects: str = ONE


@dataclass(frozen=True)
class Watermark:
    """How late rows may be.

    Args:
        column: the column with the event time.
        delay: in Spark's format, such as 10 minutes.
    """

    column: str
    delay: str


@dataclass(frozen=True)
class Source:
    """A source of a pipeline.

    Args:
        name: of its view.
        options: of the format `harebell`, by their names as the documentation writes them.
        body: how to decode bodies.
        watermark: how late rows may be.
    """

    name: str
    options: dict[str, str] = field(repr=False)
    body: Body = Body()
    watermark: Watermark | None = None

    @property
    def what(self) -> str:
        """What it reads: the option that names it, without the address of the broker."""
        return next(
            (f"{key} {self.options[key]}" for key in _READ_FROM if key in self.options), "nothing"
        )


@dataclass(frozen=True)
class Step:
    """One step: SQL or Python.

    Args:
        name: of the view that it makes.
        sql: the query; "" for a Python step.
        python: module and function, `module:function`; "" for SQL.
        source: the view that is the argument of a Python function.
        watermark: how late rows may be.
        stateful: whether it keeps state between micro-batches.
    """

    name: str
    sql: str = ""
    python: str = ""
    source: str = SOURCE
    watermark: Watermark | None = None
    stateful: bool = False


_LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
"""A text as an SQL literal, as `check_sinks` writes it."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True)
class Sink:
    """A sink of a pipeline.

    Args:
        name: what it is called in the state that is kept of it; never changed while a checkpoint
            is in use.
        kind: type: exchange, delta, iceberg, parquet or console.
        source: the view to write.
        where: an SQL condition for its rows; "" for all.
        target: exchange, or directory of a table.
        options: all other settings, by the name in the file.
        partition_by: the columns that a table is partitioned by.
    """

    name: str
    kind: str
    source: str
    target: str
    where: str = ""
    options: dict[str, str] = field(default_factory=dict, repr=False)
    partition_by: tuple[str, ...] = ()

    @property
    def queue(self) -> str:
        """The one queue that it publishes to, by the default exchange; "" for any other sink."""
        key = _LITERAL.fullmatch(self.options.get("routingKeyExpression", ""))
        if self.kind != "exchange" or self.target or key is None:
            return ""
        return _ESCAPED.sub(r"\1", key[1])


@dataclass(frozen=True)
class Trigger:
    """When micro-batches begin.

    Args:
        kind: now (process present messages, then end), asap, or every.
        seconds: the interval.
    """

    kind: str = "now"
    seconds: float = 0.0

    def __str__(self) -> str:
        if self.kind == "now":
            return "now: what is there when it starts, then it ends"
        if self.kind == "asap":
            return "asap: as soon as there is something"
        return f"every {self.seconds:g} seconds"


@dataclass(frozen=True)
class Description:
    """A pipeline.

    Args:
        name: of the pipeline.
        file: its file; None for built-in pipelines.
        directory: base of relative paths.
        sources: the queues and files that it reads, the first one first.
        steps: what is done with the rows, in this order.
        sinks: where the rows go; each gets all of them.
        trigger: when.
        checkpoint: directory where Spark stores its progress.
        mode: Spark's output mode.
        settings: of the Spark session.
        master: where Spark runs; "" for this machine.
        report: whether it reports to the broker how far it is.
    """

    name: str
    file: Path | None
    directory: Path
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    trigger: Trigger
    checkpoint: Path
    mode: str = "append"
    settings: dict[str, str] = field(default_factory=dict)
    master: str = ""
    report: bool = True

    @property
    def stateful(self) -> bool:
        """Whether a step keeps state between micro-batches."""
        return any(step.stateful for step in self.steps)

    @property
    def per_batch(self) -> bool:
        """Whether the steps run on micro-batches and not on the stream.

        They do if the sinks use more than one view, or if bad rows are separated from good ones: a
        stream can be used by one query only, a micro-batch by several.
        """
        views = {sink.source for sink in self.sinks}
        return len(views) > 1 or self.sorts_bad_rows

    @property
    def sorts_bad_rows(self) -> bool:
        """Whether bad rows have a sink of their own."""
        return any(source.body.on_error == "dead-letter" for source in self.sources)
