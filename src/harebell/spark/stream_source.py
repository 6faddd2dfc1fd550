"""The stream reader: what Spark asks about a queue, in which order, and what the answers promise.

    latestOffset(start)   everything before start is in Spark's commit log: it is acknowledged, and
                          the next messages are received into the spool
    partitions(a, b)      the spooled rows between a and b, cut for the cores
    read(partition)       in an executor: the rows, mapped from the file

The promise is at-least-once: a message is acknowledged only after Spark has committed the
micro-batch it was in. `commit` is not what says so, for Spark never calls it for a query's last
micro-batch. Being asked for the offset after X is, also after a restart, also at the end of an
AvailableNow query.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from harebell.spark import spool as spools
from harebell.spark.batches import arrow_schema
from harebell.spark.bodies import decoded, raw_schema
from harebell.spark.intake import SourceError
from harebell.spark.offsets import START, Offset
from harebell.spark.options import BINARY, Options
from harebell.spark.receiver import Receiver
from harebell.spark.schema import Selection, select

_LOG = logging.getLogger("harebell.spark")


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a queue.

    Spark makes three of these: in its planner, in the process that serves the query, and, pickled,
    in the executors. Only the second one connects, and not before it is asked something.

    Args:
        options: which queue, and how.
        schema: the wanted columns.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._selection: Selection = select(schema, options.body_format)
        self._wanted = arrow_schema(schema)
        self._schema = raw_schema(self._wanted, options.body_format)
        self._body = (options.body_format, options.mode)
        self._options: Options | None = options
        self._receiver: Receiver | None = None
        self._backlog: int | None = None
        self._target: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Executors read files; they need no address and no password.
        return self.__dict__ | {"_options": None, "_receiver": None}

    # --- in the process that serves the query ---------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where a new query begins; Spark asks twice and wants one answer."""
        return START.to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember how many messages there are: the query ends when they are processed."""
        self._backlog = self._receiving().backlog()
        self._target = None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much Spark may ask for at once."""
        return ReadMaxRows(self._asked().max_offsets_per_trigger)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Acknowledge what is committed and receive the next micro-batch."""
        here = Offset.of_json(start)
        receiver = self._receiving()
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._asked().window
        draining = self._backlog is not None
        if self._backlog is not None:
            if self._target is None:
                self._target = here.position + self._backlog
            most = min(most, self._target - here.position)
        end = here
        if most > 0:
            end = receiver.advance(here, most, draining=draining)
        if draining and end == here:
            # Spark does not call stop() at the end of an AvailableNow query.
            self._target = here.position
            receiver.finish(here)
        # The very same text when there is nothing new: Spark compares offsets as text.
        return start if end == here else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Where the queue ends, for the query's progress."""
        lag = None if self._receiver is None else self._receiver.lag()
        return None if lag is None else {"position": lag, "spool": ""}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan a micro-batch, a new one or, after a restart, one that was not committed."""
        first, last = Offset.of_json(start), Offset.of_json(end)
        if first.position >= last.position:
            return []
        try:
            return list(
                spools.plan(
                    self._root(),
                    last.spool,
                    first.position,
                    last.position,
                    self._asked().partitions,
                )
            )
        except FileNotFoundError as error:
            if self._receiver is not None and self._receiver.holds(last.spool):
                raise SourceError(
                    f"the spool was removed while the query ran ({error}); nothing is lost: start "
                    "the query again, and the messages are delivered again"
                ) from error
            # Planned by a process that is gone, and never acknowledged: the queue has them.
            _LOG.warning("messages that were planned before are taken from the queue: %s", error)
            return []

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: acknowledging is done in `latestOffset`, see above."""

    def stop(self) -> None:
        """Leave the broker, which takes back what is not acknowledged."""
        if self._receiver is not None:
            self._receiver.stop()

    def _asked(self) -> Options:
        assert self._options is not None, "only executors have no options"
        return self._options

    def _root(self) -> Any:
        return self._asked().spool_dir or spools.default_root()

    def _receiving(self) -> Receiver:
        if self._receiver is None:
            self._receiver = Receiver(self._asked(), self._selection, self._schema, self._root())
        return self._receiver

    # --- in an executor -------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        assert isinstance(partition, spools.SpoolPartition), "a partition of ours"
        for batch in spools.read(partition, self._schema):
            yield batch if self._body[0] == BINARY else decoded(batch, self._wanted, *self._body)
