"""Receive a queue for one query: connect, gather micro-batches, acknowledge committed ones.

    NOT CONNECTED --advance--> RECEIVING --finish--> NOT CONNECTED
          ^                        |
          +---- connection lost ---+     what was not committed is delivered again

The receiver is in the process that Spark starts for the query on the driver. Between Spark's
calls a thread serves the connection (heartbeats, deliveries within the prefetch); one lock
serializes the two.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from harebell.base.errors import HarebellError
from harebell.client.errors import AMQPError
from harebell.spark.limits import (
    SPARK_GATHER_SECONDS,
    SPARK_KEEP_SECONDS,
    SPARK_LONG_POLL_SECONDS,
    SPARK_QUIET_SECONDS,
)
from harebell.spark.options.source_options import Options
from harebell.spark.reading.broker_connection import LOST, turned_away
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.offsets import SpoolOffset
from harebell.spark.reading.spooled import spool as spools
from harebell.spark.reading.spooled.queue_consumer import QueueConsumer
from harebell.spark.schema import ColumnSelection

_LOG = logging.getLogger("harebell.spark")
_RETRY_SECONDS = 0.5

T = TypeVar("T")


class Receiver:
    """The receiving part of a query.

    Args:
        options: which queue, and how.
        selection: the columns to read.
        schema: the same as Spark's Arrow schema.
        root: the directory of all spools.
    """

    def __init__(
        self, options: Options, selection: ColumnSelection, schema: pa.Schema, root: Path
    ) -> None:
        self._options = options
        self._selection = selection
        self._schema = schema
        self._root = root
        self._consumer: QueueConsumer | None = None
        self._failure: HarebellError | None = None
        self._planned = ""
        self._connected_before = False
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._keeper: threading.Thread | None = None

    # --- Spark's calls --------------------------------------------------------------------------

    def backlog(self) -> int:
        """Return the number of messages in the queue.

        Raises:
            AMQPError: there is no connection.
            SourceError: the queue does not exist.
        """
        with self._lock:
            return self._patiently(lambda: self._opened(0).ready())

    def lag(self) -> int | None:
        """Return the number of messages after the last micro-batch, if known."""
        with self._lock:
            if self._consumer is None:
                return None
            try:
                # Counted first: messages that are delivered meanwhile are not ready any more.
                ready = self._consumer.ready()
                return self._consumer.position + ready
            except AMQPError:
                # The next micro-batch reconnects, or raises the error.
                return None

    def advance(
        self,
        start: SpoolOffset,
        max_messages: int,
        byte_count: int | None = None,
        *,
        draining: bool,
    ) -> SpoolOffset:
        """Acknowledge everything before `start`, which Spark has committed; receive a micro-batch.

        Args:
            start: where the micro-batch begins.
            max_messages: maximum number of messages.
            byte_count: bytes of messages after which it is full; None for no limit.
            draining: whether to wait for messages that are known to be in the queue.

        Returns:
            Its end: `start` if there are no messages.

        Raises:
            SourceError: the query cannot continue.
            AMQPError: the broker cannot be reached, or refuses.
        """
        with self._lock:
            return self._patiently(lambda: self._advance(start, max_messages, byte_count, draining))

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Run a call, reconnecting when the connection is lost."""
        give_up = time.monotonic() + self._options.fetch_timeout
        while True:
            try:
                return ask()
            except LOST as error:
                # Before the first login a wrong address or password is more likely than an outage.
                if not self._connected_before or turned_away(error, known=True):
                    raise
                self._lost(error)
                if time.monotonic() >= give_up:
                    raise SourceError(
                        f"the connection to {self._options.url.address} was lost and could not "
                        f"be made again in {self._options.fetch_timeout:g} s: {error}"
                    ) from error
                time.sleep(_RETRY_SECONDS)

    def settle_early(self, end: SpoolOffset) -> None:
        """Acknowledge what was received, although it is not committed."""
        with self._lock:
            if self._consumer is not None:
                self._consumer.settle(end.position)

    def finish(self, start: SpoolOffset) -> None:
        """Acknowledge what is committed, close the connection and delete the spool."""
        with self._lock:
            self._over.set()
            consumer, self._consumer = self._consumer, None
            if consumer is not None:
                self._leave(consumer, start)
            if start.spool:
                spools.drop(self._root, start.spool)

    def stop(self) -> None:
        """Close at once; the spool keeps what Spark has planned for the next run."""
        with self._lock:
            self._over.set()
            consumer, self._consumer = self._consumer, None
            if consumer is not None:
                consumer.abandon()
                self._put_away(consumer)

    def holds(self, name: str) -> bool:
        """True if a spool belongs to the present connection."""
        return self._consumer is not None and self._consumer.spool.name == name

    # --- connection -----------------------------------------------------------------------------

    def _opened(self, position: int) -> QueueConsumer:
        if self._consumer is None:
            self._failure = None
            spool = spools.Spool(self._root, self._schema)
            self._consumer = QueueConsumer(
                self._options, self._selection, self._schema, spool, position
            )
            self._connected_before = True
            self._keep()
        return self._consumer

    def _lost(self, error: AMQPError) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is None:
            return
        _LOG.warning(
            "lost the connection to %s (%s): messages of queue %r that were not acknowledged are "
            "delivered again, also those that Spark has processed since",
            self._options.url.address,
            error,
            self._options.queue,
        )
        consumer.lost()
        # The broker delivers again what was not acknowledged.
        consumer.spool.drop()

    def _leave(self, consumer: QueueConsumer, start: SpoolOffset) -> None:
        try:
            consumer.settle(start.position)
            consumer.close()
        except AMQPError as error:
            _LOG.warning(
                "the last messages of queue %r could not be acknowledged and are delivered again: "
                "%s",
                self._options.queue,
                error,
            )
        consumer.spool.drop()

    def _put_away(self, consumer: QueueConsumer) -> None:
        # Spark plans a micro-batch that is not in its commit log again, from these files.
        if consumer.spool.name == self._planned:
            consumer.spool.leave()
        else:
            consumer.spool.drop()

    # --- a micro-batch --------------------------------------------------------------------------

    def _advance(
        self, start: SpoolOffset, max_messages: int, byte_count: int | None, draining: bool
    ) -> SpoolOffset:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        consumer = self._opened(start.position)
        if not consumer.base <= start.position <= consumer.position:
            # The connection was opened to count messages, before the offset of the query was known.
            consumer.abandon()
            consumer.spool.drop()
            self._consumer = None
            consumer = self._opened(start.position)
        consumer.settle(start.position)
        consumer.spool.forget_before(start.position)
        if start.spool and start.spool != consumer.spool.name:
            spools.drop(self._root, start.spool)
        consumer.consume()
        end = self._gather(consumer, start.position, max_messages, byte_count, draining)
        if end == start.position:
            return start
        consumer.seal()
        self._planned = consumer.spool.name
        return SpoolOffset(end, consumer.spool.name)

    def _gather(
        self,
        consumer: QueueConsumer,
        first: int,
        max_messages: int,
        byte_count: int | None,
        draining: bool,
    ) -> int:
        """Receive until the micro-batch is full or no more messages come; return its end."""
        began = changed = time.monotonic()
        seen = consumer.position
        while (
            consumer.position < first + max_messages
            and consumer.within(first, byte_count) == consumer.position
        ):
            consumer.pump(SPARK_QUIET_SECONDS)
            now = time.monotonic()
            if consumer.position > seen:
                # The first delivery: the time to gather counts from here, not from the request.
                if seen == first:
                    began = now
                seen, changed = consumer.position, now
            have = seen > first
            if not draining:
                if self._enough(have, now - began, now - changed):
                    break
            elif not have:
                if self._drained(consumer, first, now - changed):
                    return first
            elif self._no_more(consumer, now - changed):
                break
        return min(consumer.position, consumer.within(first, byte_count), first + max_messages)

    def _enough(self, have: bool, gathered: float, quiet: float) -> bool:
        if have:
            return quiet >= SPARK_QUIET_SECONDS or gathered >= SPARK_GATHER_SECONDS
        return gathered >= self._options.long_poll_ms / 1000

    def _no_more(self, consumer: QueueConsumer, quiet: float) -> bool:
        """True if no messages are missing; a slow broker does not make micro-batches small."""
        late = quiet >= self._options.fetch_timeout
        return quiet >= SPARK_LONG_POLL_SECONDS and (late or consumer.ready() == 0)

    def _drained(self, consumer: QueueConsumer, first: int, quiet: float) -> bool:
        """True if messages that were counted in the queue will not arrive any more."""
        if quiet < SPARK_LONG_POLL_SECONDS:
            return False
        ready = consumer.ready()
        if ready == 0:
            # They may have been assigned to us during the request: RabbitMQ's quorum queues
            # answer before they write deliveries. These arrive before the second answer.
            return consumer.ready() == 0 and consumer.position == first
        if quiet >= self._options.fetch_timeout:
            raise SourceError(
                f"queue {self._options.queue!r} holds {ready} messages, but none was delivered in "
                f"{self._options.fetch_timeout:g} s: does it have another active or exclusive "
                "consumer?"
            )
        return False

    # --- between the calls ----------------------------------------------------------------------

    def _keep(self) -> None:
        if self._keeper is None or not self._keeper.is_alive() or self._over.is_set():
            # A stopped thread may not have seen the event yet; it must not receive any more.
            self._over = threading.Event()
            self._keeper = threading.Thread(
                target=self._serve, args=(self._over,), name="harebell-spark-keeper", daemon=True
            )
            self._keeper.start()

    def _serve(self, over: threading.Event) -> None:
        while not over.wait(SPARK_KEEP_SECONDS):
            # A call of Spark has the lock, and serves the connection itself.
            if not self._lock.acquire(blocking=False):
                continue
            try:
                while (
                    self._consumer is not None and self._failure is None and self._consumer.pump(0)
                ):
                    pass
            except HarebellError as error:
                # The next call of Spark raises it.
                self._failure = error
            finally:
                self._lock.release()
