"""A query of the matrix: what it reads, the checkpoint, four sinks, and what came out of each.

All queries of a matrix share one broker, so that a restore is one for all of them. A query begins
with two micro-batches; after the copy it makes so many claims more, the last of which may have
been left behind by a driver that died; after the fault there are new messages.

    skips      a table that skips a micro-batch that it has: Parquet, Delta, Iceberg
    replaces   a `foreachBatch` that writes it again under its number
    exchange   the sink of the format, on the broker that the query reads from
    elsewhere  the same on another broker
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest

from harebell.base.errors import HarebellError
from harebell.client import blocking
from harebell.spark.source import QueueSource
from harebell.spark.writing.write_target import SinkError
from harebell.testing import Checkpoint, StreamCalls
from tests.ports import free_port
from tests.robustness.lives import forget, kill, snapshot
from tests.running import RunningBroker
from tests.spark.asking import BODIES
from tests.spark.conftest import PATIENT
from tests.spark.tasks import TEXTS, Query

KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "quorum": {"x-queue-type": "quorum"},
    "priority": {"x-max-priority": 5},
    "keys": {"x-group-key": "routing_key"},
    "stream": {"x-queue-type": "stream"},
    "super": {"x-queue-type": "stream"},
    "peek": {},
}
MATRIX = [
    pytest.param(kind, marks=() if kind in ("classic", "stream") else pytest.mark.soak)
    for kind in KINDS
]
"""The kinds as parameters: the two ways of reading with every test run, all with the long ones."""
LOGS = ("stream", "super", "peek")
"""Kinds that are read by position."""
FULL = ("none", "planned", "written")
"""How far a driver was with the last micro-batch when it died: see `Cell`."""
STEP = 5
"""Messages of a micro-batch."""
_FRESH = 12
_FRESH_FROM = 1_000


class Listening(Protocol):
    """A broker that is there now."""

    @property
    def port(self) -> int:
        """Where it listens."""


@dataclass(frozen=True)
class Cell:
    """What a query is in for.

    Args:
        kind: of the queue.
        ahead: claims that the checkpoint has, and the broker after a restore has not.
        left: the last of them was finished ("none"), or the driver died when it was planned, or
            when the sinks had it ("written").
        early: whether all messages were there before the copy was made.
        tolerant: whether `failOnDataLoss` is false from the beginning.
    """

    kind: str
    ahead: int
    left: str = "none"
    early: bool = False
    tolerant: bool = False


class Table:
    """Micro-batches by number.

    Args:
        replaces: whether one that comes again is written over.
    """

    def __init__(self, *, replaces: bool) -> None:
        self._replaces = replaces
        self._batches: dict[int, list[int]] = {}

    def write(self, batch: int, ids: list[int]) -> None:
        """Write a micro-batch."""
        if self._replaces or batch not in self._batches:
            self._batches[batch] = ids

    def ids(self) -> list[int]:
        """What is there."""
        return [number for batch in self._batches.values() for number in batch]


class Exchange:
    """The sink of the format into a queue.

    Args:
        url: returns the address of the broker.
        queue: that gets the rows, and is the name of the query.
    """

    def __init__(self, url: Callable[[], str], queue: str) -> None:
        self.url = url
        self.queue = queue
        self._runs = 0

    def restart(self) -> None:
        """Begin a new run."""
        self._runs += 1

    def write(self, batch: int, ids: list[int]) -> None:
        """Write a micro-batch as one task."""
        query = Query(
            {"url": self.url(), "exchange": "", "delivery": "exactly-once"},
            TEXTS,
            self.queue,
            f"run {self._runs}",
        )
        columns = [pa.array([b"%d" % number for number in ids], pa.binary())]
        columns.append(pa.array([self.queue] * len(ids), pa.string()))
        query.run(batch, [pa.RecordBatch.from_arrays(columns, schema=TEXTS)])

    def ids(self) -> list[int]:
        """What is there; it is taken out."""
        with blocking.connect(self.url()) as connection:
            channel = connection.channel()
            found = iter(lambda: channel.get(self.queue, no_ack=True), None)
            return [int(bytes(message.body)) for message in found]


@dataclass
class Outcome:
    """What became of the rows in one sink.

    Args:
        lost: messages that are not there.
        doubled: messages that are there more than once.
        said: errors and warnings of the source, and of this sink.
    """

    lost: int
    doubled: int
    said: list[str]

    @property
    def silent(self) -> bool:
        """Whether something is wrong, and nobody has said so."""
        return bool(self.lost or self.doubled) and not self.said


@dataclass
class Played:
    """A query in its cell.

    Args:
        cell: what it is in for.
        queue: the queue that it reads.
        broker: returns what the query reads from.
        elsewhere: returns the other broker.

    Attributes:
        user: of the query.
        options: of the source, beside the address.
        checkpoint: what Spark has of it.
        said: errors and warnings of the source.
        said_by_sinks: those of the sinks to exchanges.
        early: messages that the broker has also after a restore, or before and after.
        late: those that it had between the copy and the restore only.
        first: the checkpoint when the copy was made.
    """

    cell: Cell
    queue: str
    broker: Callable[[], Listening]
    elsewhere: Callable[[], Listening]
    user: str = "guest"
    options: dict[str, str] = field(default_factory=dict)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    said: list[str] = field(default_factory=list)
    said_by_sinks: list[str] = field(default_factory=list)
    early: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        kind = self.cell.kind
        self.options["superStream" if kind == "super" else "queue"] = self.queue
        if kind in LOGS:
            self.options["startingOffsets"] = "earliest"
        if kind == "peek":
            self.options["delivery"] = "peek"
        self.exchanges = {
            "exchange": Exchange(lambda: self._as_user(self.broker()), f"out.{self.queue}"),
            "elsewhere": Exchange(lambda: self._as_user(self.elsewhere()), f"out.{self.queue}"),
        }
        tables = {name: Table(replaces=name == "replaces") for name in ("skips", "replaces")}
        self.sinks: dict[str, Table | Exchange] = {**tables, **self.exchanges}

    def url(self) -> str:
        """The address of the broker for the query's user."""
        return self._as_user(self.broker())

    def _as_user(self, broker: Listening) -> str:
        password = "guest" if self.user == "guest" else "secret"
        return f"amqp://{self.user}:{password}@127.0.0.1:{broker.port}/%2F"

    # --- the days ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Before the copy: two micro-batches, and what a driver that dies then leaves behind."""
        self.prepare()
        cell = self.cell
        after = 0 if cell.left == "none" else STEP
        self.early |= self.publish(0, 2 * STEP + after * (not cell.ahead))
        if cell.early:
            self.early |= self.publish(2 * STEP, (2 + cell.ahead) * STEP)
        self.run(batches=2, left="none" if cell.ahead else cell.left)
        self.first = deepcopy(self.checkpoint)

    def go_on(self) -> None:
        """After the copy: more claims."""
        cell = self.cell
        if cell.ahead:
            if not cell.early:
                self.late |= self.publish(2 * STEP, (2 + cell.ahead) * STEP)
            finished = cell.ahead if cell.left == "none" else cell.ahead - 1
            self.run(batches=finished, left=cell.left)

    def end(self, mend: Callable[[], object] = lambda: None) -> None:
        """After the fault: new messages, and a run; if that fails, one that tolerates losses.

        Args:
            mend: what the operator does before.
        """
        self.early |= self.publish(_FRESH_FROM, _FRESH_FROM + _FRESH)
        try:
            self.run()
        except HarebellError as error:
            said = self.said_by_sinks if isinstance(error, SinkError) else self.said
            said.append(str(error))
            mend()
            self.run(tolerant=True)

    # --- what happens -----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Declare what the query reads, and what it writes to."""
        self.declare()
        for name in self.exchanges.values():
            with blocking.connect(name.url()) as connection:
                connection.channel().declare_queue(name.queue, durable=True)

    def declare(self) -> None:
        """Declare the queue, or the partitions of the super stream."""
        with blocking.connect(self.url()) as connection:
            channel = connection.channel()
            if self.cell.kind == "super":
                layout = {"x-super-stream": True}
                channel.declare_exchange(self.queue, "direct", durable=True, arguments=layout)
            for number, name in enumerate(self._queues()):
                channel.declare_queue(name, durable=True, arguments=KINDS[self.cell.kind])
                if self.cell.kind == "super":
                    order = {"x-stream-partition-order": number}
                    channel.bind_queue(name, self.queue, str(number), arguments=order)

    def forget_group(self) -> None:
        """Let an operator remove the lease group."""
        offsets = self.checkpoint.offsets
        with blocking.connect(self.url()) as connection:
            channel = connection.channel()
            for queue, offset in offsets[max(offsets)].items():
                lease = channel.lease_open(queue, offset["group"])
                channel.lease_close(queue, offset["group"], lease.epoch, forget=True)

    def delete(self) -> None:
        """Delete the queue."""
        with blocking.connect(self.url()) as connection:
            for name in self._queues():
                connection.channel().delete_queue(name)

    def _queues(self) -> Sequence[str]:
        if self.cell.kind == "super":
            return [f"{self.queue}-0", f"{self.queue}-1"]
        return [self.queue]

    def publish(self, first: int, end: int) -> set[int]:
        """Publish numbers; return them."""
        queues = self._queues()
        with blocking.connect(self.url()) as connection:
            channel = connection.channel(confirms=True)
            for number in range(first, end):
                key = queues[number % len(queues)]
                channel.publish(b"%d" % number, routing_key=key, delivery_mode=2)
        return set(range(first, end))

    def run(self, batches: int = 1_000, *, left: str = "none", tolerant: bool = False) -> None:
        """Run the query until it has nothing to read.

        Args:
            batches: how many micro-batches at most.
            left: how the driver dies after that: see `Cell`.
            tolerant: whether `failOnDataLoss` is false.
        """
        tolerant = tolerant or self.cell.tolerant
        given = PATIENT | {"longPollMs": "0", "maxOffsetsPerTrigger": str(STEP)} | self.options
        given |= {"url": self.url(), "failOnDataLoss": "false" if tolerant else "true"}
        for exchange in self.exchanges.values():
            exchange.restart()
        calls = StreamCalls(
            lambda: QueueSource(dict(given)).streamReader(BODIES), checkpoint=self.checkpoint
        )
        with _heard(self.said, self.said_by_sinks):
            try:
                while batches and calls.plan():
                    self._write(calls)
                    calls.finish()
                    batches -= 1
                if left != "none" and calls.plan() and left == "written":
                    self._write(calls)
            finally:
                calls.stop()

    def _write(self, calls: StreamCalls) -> None:
        ids = [int(row["value"]) for row in calls.read()]
        for name, sink in self.sinks.items():
            sink.write(calls.number, ids)
            self.wrote(name, ids)

    def wrote(self, name: str, ids: list[int]) -> None:
        """Know that a sink has rows; nothing here asks for it."""

    # --- what came out ----------------------------------------------------------------------------

    def outcomes(self) -> Iterator[tuple[str, Outcome]]:
        """Each sink, and what became of the messages there."""
        for name, sink in self.sinks.items():
            # What a restored broker had after the copy is lost in any case.
            expected = self.early if name == "exchange" else self.early | self.late
            times = Counter(sink.ids())
            lost = len(expected - times.keys())
            doubled = sum(count > 1 for count in times.values())
            said = self.said + (self.said_by_sinks if name in self.exchanges else [])
            yield name, Outcome(lost, doubled, said)


class Site:
    """A broker in several lives over one data directory, and another one beside it.

    Args:
        directory: where the data directory is made.
        elsewhere: the other one.

    Attributes:
        port: of the first one, in all of its lives.
    """

    def __init__(self, directory: Path, elsewhere: RunningBroker) -> None:
        self.home = directory / "data"
        self.copy = directory / "copy"
        self.port = free_port()
        self._elsewhere = elsewhere
        self.start()

    def start(self) -> None:
        """Start the broker on what is there."""
        self.home.mkdir(exist_ok=True)
        self.broker = RunningBroker("--data-dir", str(self.home), "--port", str(self.port))

    def backup(self) -> None:
        """Copy the directory while no broker runs on it."""
        self.broker.stop()
        self.broker.remove()
        snapshot(self.home, self.copy)
        self.start()

    def restore(self) -> None:
        """Put the copy back."""
        self.broker.stop()
        self.broker.remove()
        forget(self.home, self.copy)
        self.start()

    def kill(self) -> None:
        """kill -9, and a start on the same data: a fail-over that lost nothing."""
        kill(self.broker)
        self.broker.remove()
        self.start()

    def remove(self) -> None:
        """End it."""
        kill(self.broker)
        self.broker.remove()

    @property
    def brokers(self) -> tuple[RunningBroker, RunningBroker]:
        """The one with the lives, and the other one."""
        return self.broker, self._elsewhere

    def play(self, cells: list[Cell], *, away: bool = False) -> list[Played]:
        """Make the queries.

        Args:
            cells: what each is in for.
            away: whether they read from the other broker.
        """
        here, other = (lambda: self), (lambda: self._elsewhere)
        found = enumerate(cells)
        if away:
            return [Played(cell, f"q{number}", other, here) for number, cell in found]
        return [Played(cell, f"q{number}", here, other) for number, cell in found]


@contextmanager
def _heard(said: list[str], said_by_sinks: list[str]) -> Iterator[None]:
    """Keep what Harebell's readers and writers log."""

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            writing = "writing" in Path(record.pathname).parts
            (said_by_sinks if writing else said).append(record.getMessage())

    handler = Kept(logging.WARNING)
    logger = logging.getLogger("harebell.spark")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def table(played: Iterable[tuple[str, Played]]) -> tuple[str, list[str]]:
    """Sum up queries by the group that each is given in.

    Returns:
        A table of counts, and a sentence for each sink that lost or doubled in silence.
    """
    counts: dict[str, Counter[str]] = {}
    silent = []
    for group, query in played:
        for sink, found in query.outcomes():
            row = counts.setdefault(f"{group:<24} {sink:<9}", Counter())
            row["cells"] += 1
            row["exact"] += not (found.lost or found.doubled)
            row["said"] += bool(found.said)
            row["lost"] += found.lost
            row["doubled"] += found.doubled
            if found.silent:
                silent.append(f"{query.cell}, {sink}: {found}")
    lines = [f"{name}  {dict(row)}" for name, row in sorted(counts.items())]
    return "\n".join(["", *lines]), silent
