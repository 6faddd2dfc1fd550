"""Spark's calls to a streaming source in Python, without Spark: for tests of own sources too.

    calls = StreamCalls(lambda: MySource(options).streamReader(schema))
    assert calls.batch() == [("a", 1), ("b", 2)]
    calls.plan()
    calls.restart()                  the driver was killed after it had planned a micro-batch
    assert calls.batch() == [("c", 3)]

What Spark does to the reader is done here too: offsets are JSON, the reader and its partitions are
pickled for the executors, and a micro-batch that did not end is planned again after a restart.
docs/guides/testing.md has an example.
"""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

Offset = dict[str, Any]


@dataclass
class Checkpoint:
    """What Spark stores of a query; a test may copy it, or go on from an older copy.

    Args:
        offsets: where each micro-batch ends, logged before it begins.
        commits: the micro-batches that the sink has.
    """

    offsets: dict[int, Offset] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)

    def write(self, directory: Path) -> None:
        """Write it as Spark does, for `harebell spark doctor --checkpoint`."""
        for name in ("offsets", "commits"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        for number, end in self.offsets.items():
            (directory / "offsets" / str(number)).write_text(f"v1\n{{}}\n{json.dumps(end)}")
        for number in self.commits:
            (directory / "commits" / str(number)).write_text("v1\n{}")


class StreamCalls:
    """One query over one source.

    Args:
        make: returns a new reader, as a starting driver does.
        log_every: 1, or with a greater number asynchronous progress tracking: the checkpoint gets
            the first micro-batch of a run and then one of so many, and `commit` comes late.
        checkpoint: where the query goes on; None for a new one.

    Attributes:
        checkpoint: what the query has logged.
        number: of the planned micro-batch, or of the next one.
    """

    def __init__(
        self,
        make: Callable[[], DataSourceStreamReader],
        log_every: int = 1,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._make = make
        self._log_every = log_every
        self.checkpoint = Checkpoint() if checkpoint is None else checkpoint
        self.restart()

    def restart(self) -> None:
        """Begin a run on the same checkpoint; the last reader is left alone, as by `kill -9`."""
        self.reader = self._make()
        self._due: Offset | None = None
        self._run = 0
        self._planned: Sequence[InputPartition] | None = None
        numbers = sorted(self.checkpoint.offsets)
        self._end = self.checkpoint.offsets[numbers[-1]] if numbers else None
        self.number = numbers[-1] + 1 if numbers else 0
        self._replayed: tuple[Offset | None, Offset] | None = None
        if self._end is not None and numbers[-1] not in self.checkpoint.commits:
            self.number = numbers[-1]
            before = self.checkpoint.offsets[numbers[-2]] if len(numbers) > 1 else None
            self._replayed = before, self._end

    def stop(self) -> None:
        """End the run as `query.stop()` does."""
        self.reader.stop()

    def batch(self) -> list[Any] | None:
        """Return the rows of a micro-batch that is planned, read and finished; None if it has none.

        Rows are what `read` yields; those of a record batch are dictionaries.
        """
        if not self.plan():
            return None
        rows = self.read()
        self.finish()
        return rows

    def drain(self) -> list[list[Any]]:
        """Return the micro-batches of a run with the trigger `availableNow`."""
        self.prepare()
        batches = []
        while (rows := self.batch()) is not None:
            batches.append(rows)
        return batches

    def prepare(self) -> None:
        """Begin a run with the trigger `availableNow`."""
        prepare = getattr(self.reader, "prepareForTriggerAvailableNow", None)
        if prepare is not None:
            prepare()

    def plan(self) -> bool:
        """Plan and log a micro-batch; False if the source has no new rows."""
        if self._replayed is not None:
            before, end = self._replayed
            start = self._initial() if before is None else before
            self._replayed = None
        else:
            start = self._initial() if self._end is None else self._end
            end = self._latest(start)
            if end == start:
                return False
            self._log(start, end)
        self._end = end
        self._planned = self.reader.partitions(_copied(start), _copied(end))
        return True

    def read(self) -> list[Any]:
        """Return the rows of the planned micro-batch; may be called repeatedly."""
        assert self._planned is not None, "plan() comes before read()"
        return read_rows(self.reader, self._planned)

    def finish(self) -> None:
        """Record that the sink has the planned micro-batch."""
        if self.number in self.checkpoint.offsets:
            self.checkpoint.commits.add(self.number)
        self._planned = None
        self.number += 1
        self._run += 1

    def _initial(self) -> Offset:
        return _copied(self.reader.initialOffset())

    def _latest(self, start: Offset) -> Offset:
        ask: Any = self.reader.latestOffset
        if not inspect.signature(ask).parameters:
            return _copied(ask())
        limit: Any = self.reader.getDefaultReadLimit()
        return _copied(ask(_copied(start), limit))

    def _log(self, start: Offset, end: Offset) -> None:
        """Log a micro-batch, and call `commit` as late as Spark does."""
        if self._log_every == 1:
            self._due = start if self.number else None
        if self._due is not None:
            self.reader.commit(_copied(self._due))
            self._due = None
        if self._run % self._log_every == 0:
            logged = self.checkpoint.offsets
            self._due = logged[max(logged)] if logged else None
            logged[self.number] = end


def read_rows(reader: DataSourceStreamReader, partitions: Sequence[InputPartition]) -> list[Any]:
    """Return the rows of partitions as executors read them, from a pickled reader.

    Args:
        reader: of the source.
        partitions: of the planned micro-batch.
    """
    executor = _pickled(reader)
    rows: list[Any] = []
    for partition in partitions:
        for each in executor.read(_pickled(partition)):
            rows.extend(each.to_pylist() if hasattr(each, "to_pylist") else [each])
    return rows


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - its own


def _copied(offset: Offset) -> Offset:
    copied: Offset = json.loads(json.dumps(offset))
    return copied
