"""The description of a pipeline: the values of its file, without lines, YAML or Spark.

Commands that are pipelines themselves (`archive`, `mirror`, `stats`) make a `Description` without
a file, and everything behind it is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

SOURCE = "source"
"""The name of a pipeline's only source, and of the view that the first step reads."""
FORMATS = ("binary", "text", "json")
ON_ERROR = ("fail", "drop", "dead-letter")
MODES = ("append", "update", "complete")


@dataclass(frozen=True)
class Route:
    """Where messages are published to.

    Args:
        exchange: the exchange; "" is the default exchange, whose keys are names of queues.
        routing_key: the routing key; None takes the column `routing_key`.
    """

    exchange: str
    routing_key: str | None = None

    def __str__(self) -> str:
        if not self.exchange and self.routing_key:
            return f"queue {self.routing_key}"
        return f"exchange {self.exchange}" if self.exchange else "the default exchange"


@dataclass(frozen=True)
class Body:
    """How bodies are read.

    Args:
        format: one of `FORMATS`.
        schema: the columns of a JSON body, as DDL.
        on_error: one of `ON_ERROR`: what becomes of a body that is not so.
        dead_letter: where such messages go.
    """

    format: str = "binary"
    schema: str = ""
    on_error: str = "fail"
    dead_letter: Route | None = None


@dataclass(frozen=True)
class Watermark:
    """How late rows may be.

    Args:
        column: the event time.
        delay: as Spark writes times, such as 10 minutes.
    """

    column: str
    delay: str


@dataclass(frozen=True)
class Source:
    """What is read.

    Args:
        name: of its view.
        options: of the format `harebell`.
        body: how bodies are read.
        watermark: how late rows may be.
    """

    name: str
    options: dict[str, str] = field(repr=False)
    body: Body = Body()
    watermark: Watermark | None = None

    @property
    def what(self) -> str:
        """What is read, without any secret."""
        for key in ("queue", "queues", "queuePattern", "stream"):
            if key in self.options:
                return f"{key} {self.options[key]}"
        return "nothing"


@dataclass(frozen=True)
class Step:
    """One step: SQL or Python.

    Args:
        name: of the view that it makes.
        sql: the query; "" for a Python step.
        python: module and function, `module:function`; "" for SQL.
        source: the view that a Python function gets.
        watermark: how late rows may be.
        stateful: whether it keeps something from one micro-batch to the next.
    """

    name: str
    sql: str = ""
    python: str = ""
    source: str = SOURCE
    watermark: Watermark | None = None
    stateful: bool = False


@dataclass(frozen=True)
class Sink:
    """Where rows go.

    Args:
        name: what it is called in the state that is kept of it; never changed while a checkpoint
            is in use.
        kind: exchange, delta, parquet or console.
        source: the view it takes.
        where: which rows of it, as an SQL condition; "" for all.
        target: exchange, or path of a table or folder.
        options: what else it was told, by the name in the file.
    """

    name: str
    kind: str
    source: str
    target: str
    where: str = ""
    options: dict[str, str] = field(default_factory=dict, repr=False)
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trigger:
    """When micro-batches begin.

    Args:
        kind: now (what is there, then end), asap, or every.
        seconds: between two of them.
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
        file: where it stands; None for the pipelines of commands.
        directory: what relative paths begin from.
        sources: what is read.
        steps: what is done with it.
        sinks: where it goes.
        trigger: when.
        checkpoint: where Spark remembers how far it is.
        mode: Spark's output mode.
        settings: of the Spark session.
        master: where Spark runs; "" for here.
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

    @property
    def stateful(self) -> bool:
        """Whether a step keeps something from one micro-batch to the next."""
        return any(step.stateful for step in self.steps)

    @property
    def per_batch(self) -> bool:
        """Whether the steps run on micro-batches instead of on the stream.

        They do when the sinks want more than one view, or when bad rows have to be told from good
        ones: what a stream can give to one query only, a micro-batch gives to all.
        """
        views = {sink.source for sink in self.sinks}
        return len(views) > 1 or self.sorts_bad_rows

    @property
    def sorts_bad_rows(self) -> bool:
        """Whether bad rows go somewhere of their own."""
        return any(source.body.on_error == "dead-letter" for source in self.sources)
