"""Publish rows of Arrow record batches: build frames from the columns, count the confirms."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harebell.client.errors import CallTimeout, PublishReturned
from harebell.client.limits import ROWS_PER_PUBLISH_BYTES
from harebell.client.protocol import stages
from harebell.client.protocol.confirms import MANDATORY
from harebell.client.protocol.counted_confirms import CountedConfirms
from harebell.kernels.rows import Rows

if TYPE_CHECKING:
    from harebell.client.blocking.connection import Connection


class RowPublisher:
    """Publish rows on a separate channel and count their confirms.

    Args:
        connection: the connection; it must not recover.
        window: maximum number of unconfirmed rows.
        mandatory: whether unroutable rows are returned.
        patience: seconds without a confirm after which publishing fails.

    Attributes:
        tally: counts of the confirms and returns.
        returned: returned messages that were not taken yet.
        keep_returned: maximum number of these to keep; more are only counted.
    """

    def __init__(
        self, connection: Connection, *, window: int, mandatory: bool, patience: float
    ) -> None:
        self.returned: list[PublishReturned] = []
        self.keep_returned = 0
        self.tally = CountedConfirms(self._keep)
        self._connection = connection
        self._channel = connection.channel(confirms=True)
        self._channel.core.confirms = self.tally
        # Sent now, before the first publish, so that the answer has arrived by then.
        self._connection.finish(self._channel.core.select_confirms())
        self._window = window
        self._flags = MANDATORY if mandatory else 0
        self._patience = patience

    def number(self, publisher: str) -> int:
        """Publish with deduplication: the broker drops numbers that the publisher has used.

        Returns:
            The smallest number that the broker has not accepted yet.

        Raises:
            ExtensionMissing: the broker has no publisher deduplication.
        """
        declared = stages.publisher_declare(self._channel.core, publisher)
        return self._connection.finish(declared).next

    def _keep(self, error: PublishReturned) -> None:
        if len(self.returned) < self.keep_returned:
            self.returned.append(error)

    def publish(self, rows: Rows, byte_count: int, first: int, end: int) -> int:
        """Publish some of the rows of a batch, as the window allows.

        Args:
            rows: the batch.
            byte_count: size of the batch in bytes.
            first: the first row.
            end: the row after the last.

        Returns:
            The next row to publish.

        Raises:
            BatchError: a row cannot become a message.
            AMQPError: the channel or the connection ended, or no confirm arrived in time.
        """
        # One block of output at a time, so that the broker works while the next one is built.
        step = max(1, ROWS_PER_PUBLISH_BYTES * rows.rows // max(1, byte_count))
        end = min(end, first + step, first + self._window)
        self.settle(self._window - (end - first))
        self.tally.count(self._channel.core.publish_rows(rows, self._flags, first, end))
        self._connection.pump(0.0)
        return end

    def settle(self, limit: int = 0) -> None:
        """Wait until at most this many rows are unconfirmed.

        Raises:
            AMQPError: the channel or the connection ended, or no confirm arrived in time.
        """
        until = time.monotonic() + self._patience
        waiting = len(self.tally)
        while waiting > limit:
            # The end of the channel may have been read already: then no more input arrives.
            self._channel.core.check_open()
            self._connection.pump(max(0.0, until - time.monotonic()))
            now = len(self.tally)
            if now < waiting:
                waiting, until = now, time.monotonic() + self._patience
            elif time.monotonic() >= until:
                raise CallTimeout(self._silence(now))
        self._channel.core.check_open()

    def _silence(self, waiting: int) -> str:
        text = f"{waiting} rows were not confirmed in {self._patience:g} s"
        reason = self._connection.blocked_reason
        return text if reason is None else f"{text}: the broker takes no publishes now: {reason}"
