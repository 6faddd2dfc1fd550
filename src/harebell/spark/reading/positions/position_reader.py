"""Read a queue of Harebell by position: a stream, or any queue without consuming it.

Nothing is consumed or acknowledged; the checkpoint stores the position of the query. A stream
keeps its messages until retention removes them, so this is exactly once as long as the query
keeps up with it. Messages of other queues can be consumed by other clients at any time.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, ClassVar

from harebell.base.eras import eras_before
from harebell.client.bulk import Span
from harebell.client.errors import NotFound
from harebell.spark.options.offset_limits import EARLIEST, LATEST, POSITION, OffsetLimit
from harebell.spark.options.source_options import AT_MOST_ONCE, PEEK, Options
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.data_loss_policy import DataLossPolicy
from harebell.spark.reading.errors import SourceError, no_queue
from harebell.spark.reading.offsets import LogOffset, QueueOffset, expected
from harebell.spark.reading.planning import OffsetRange
from harebell.spark.reading.positions.tier import with_tier

_LOG = logging.getLogger("harebell.spark")
STREAM = "stream"
_MICROS_PER_MS = 1000


class PositionReader:
    """Read one queue by position.

    Args:
        options: which queue, and how.
        connection: where the positions are looked up.
        kind: type of the queue.
    """

    offset_class: ClassVar[type[QueueOffset]] = LogOffset

    def __init__(self, options: Options, connection: BrokerConnection, kind: str) -> None:
        self.queue = options.queue
        self._options = options
        self._connection = connection
        self._kind = kind
        self._losses = DataLossPolicy(options)
        self._begun: LogOffset | None = None
        self._target: int | None = None
        self._last_end: LogOffset | None = None
        # The eras of the positions, and where they come from: number of the connection, and log.
        self._eras = ""
        self._log: tuple[int, str] | None = None
        self._reported: set[LogOffset] = set()

    def begin(self) -> QueueOffset:
        """Return the starting offset; by default the end of a stream, else the head."""
        if self._begun is None:
            default = OffsetLimit(LATEST if self._kind == STREAM else EARLIEST)
            place = self._options.starting.of(self.queue) or default
            span = self._span()
            position = resolved(place, span, self._connection, self._options, ending=False)
            self._begun = self._at(span, position)
        return self._begun

    def join(self) -> QueueOffset:
        """Return the first position, whatever the options set for a new query."""
        span = self._span()
        return self._at(span, span.first)

    def before(self, end: QueueOffset) -> QueueOffset:
        """Return the first position of the queue."""
        return replace(self._own(end), position=self._span().first, eras="")

    def prepare(self) -> None:
        """Remember the end of the queue."""
        self._target = span_of(self._connection, self._options).end

    def available(self, start: QueueOffset) -> int:
        """Return the number of positions after an offset."""
        span = self._span()
        return max(0, span.end - self._checked(self._own(start), span).position)

    def advance(self, start: QueueOffset, max_messages: int, byte_count: int | None) -> QueueOffset:
        """Return the offset after at most this many messages."""
        here = self._own(start)
        span = self._span()
        here = self._checked(here, span)
        end = span.end if self._target is None else min(span.end, self._target)
        end = min(end, here.position + max_messages)
        if byte_count is not None and span.messages:
            # The broker reports the size of all messages together.
            size = max(1, span.octets // span.messages)
            end = min(end, here.position + max(1, byte_count // size))
        # `start`, also if a loss has moved `here`: another offset would be a micro-batch without
        # rows.
        if end <= here.position:
            return start
        self._last_end = self._at(span, end)
        return self._last_end

    def extend(
        self, start: QueueOffset, end: QueueOffset, max_messages: int, byte_count: int | None
    ) -> QueueOffset:
        """Return a later end."""
        return self.advance(end, max_messages, byte_count)

    def plan(self, start: QueueOffset, end: QueueOffset) -> list[OffsetRange]:
        """Return the range between two offsets."""
        first, last = self._own(start), self._own(end)
        # Another process has planned it and may have processed it before it died.
        if self._options.delivery == AT_MOST_ONCE and last != self._last_end:
            return []
        span = self._span()
        position = self._checked(first, span).position
        if last.generation != span.generation:
            # `_checked` has reported that; the positions are those of the old log.
            return []
        # The broker may have lost the end of a micro-batch that was planned before.
        behind = self._shared(last, span)
        position = min(position, behind)
        return [OffsetRange(self.queue, span.generation, position, behind, behind - position)]

    def report(self) -> dict[str, Any] | None:
        """Return the end of the queue, its first position and the mean size of a message."""
        try:
            span = span_of(self._connection, self._options)
        except SourceError:
            return None
        size = span.octets // max(1, span.messages)
        about = {"first": span.first, "messageBytes": size}
        return LogOffset(span.generation, span.end).to_json() | about

    def finish(self, start: QueueOffset) -> None:
        """Do nothing: no messages are held."""

    def leave(self, start: QueueOffset) -> None:
        """Do nothing: no messages are held."""

    def stop(self) -> None:
        """Do nothing: no messages are held."""

    def _checked(self, offset: LogOffset, span: Span) -> LogOffset:
        """Return the offset, or the next readable position if the messages after it are lost."""
        if offset.generation != span.generation:
            self._losses.report_new_log(self.queue, offset.generation, span.generation)
            return self._at(span, span.first)
        shared = self._shared(offset, span)
        if shared < offset.position:
            offset = self._at(span, shared)
        if offset.position > span.end:
            self._losses.report(
                f"the checkpoint has read queue {self.queue!r} up to position {offset.position}, "
                f"but it ends at {span.end}: the broker has lost messages, or its data directory "
                "is an older one"
            )
            return replace(offset, position=span.end)
        # In other queues consumers take messages at any time, so a later head is no loss.
        if self._kind == STREAM and offset.position < span.first:
            self._losses.report(
                f"positions {offset.position} to {span.first - 1} of stream {self.queue!r} are "
                f"gone: retention has let them go before they were read, and {span.first} is the "
                "first that is kept"
            )
            return replace(offset, position=span.first)
        return offset

    def _shared(self, offset: LogOffset, span: Span) -> int:
        """Return up to where the log has the positions before an offset; report the others as lost.

        Raises:
            DataLoss: the query must fail.
        """
        shared = offset.shared(self._eras)
        if shared == offset.position or offset in self._reported:
            return shared
        taken = max(0, min(offset.position, span.end) - shared)
        self._losses.report(
            f"the checkpoint has read queue {self.queue!r} up to position {offset.position}, but "
            f"only those before {shared} are the broker's: its data directory is an older one, or "
            f"it has lost messages. {offset.position - shared} positions that were read are lost "
            f"there, {taken} of them belong to other messages now, and {span.end - shared} "
            f"messages from {shared} on were not read"
        )
        self._reported.add(offset)
        return shared

    def _at(self, span: Span, position: int) -> LogOffset:
        return LogOffset(span.generation, position, eras_before(self._eras, position))

    def _span(self) -> Span:
        """Return the position range of the queue, and note the eras that belong to it."""
        while True:
            span = span_of(self._connection, self._options)
            log = (self._connection.made, span.generation)
            if log == self._log:
                return span
            try:
                self._eras = self._connection.eras(self.queue)
            except NotFound as error:
                raise no_queue(self._options) from error
            # Span and eras are of one process of the broker unless the connection was lost between.
            self._log = log if log[0] == self._connection.made else None

    def _own(self, offset: QueueOffset) -> LogOffset:
        return expected(offset, LogOffset, self.queue)


def span_of(connection: BrokerConnection, options: Options, time_ms: int = 0) -> Span:
    """Return the position range of a queue, with that of its tier if the options name one.

    Raises:
        SourceError: the queue does not exist, or the tier cannot be read.
        OptionError: a tier was given for a queue that is no stream.
    """
    try:
        span = connection.call(lambda channel: channel.span(options.queue, time=time_ms))
        eras = "" if options.tier is None else connection.eras(options.queue)
    except NotFound as error:
        raise no_queue(options) from error
    return span if options.tier is None else with_tier(span, eras, options, time_ms)


def _kept(
    place: OffsetLimit, span: Span, connection: BrokerConnection, options: Options
) -> OffsetLimit:
    """Return a position, or the last one before it that the broker has kept since it was given.

    Raises:
        DataLoss: it is another one, and the query must fail.
    """
    losses = DataLossPolicy(options)
    if place.generation not in ("", span.generation):
        losses.report_new_log(options.queue, place.generation, span.generation)
        return replace(place, number=span.first)
    offset = LogOffset(span.generation, place.number, place.eras)
    shared = offset.shared(connection.eras(options.queue) if place.eras else "")
    if shared < place.number:
        losses.report(
            f"the options name position {place.number} of queue {options.queue!r}, but only "
            f"those before {shared} are the broker's: its data directory is an older one, or it "
            f"has lost messages. {place.number - shared} positions are lost there, and "
            f"{max(0, min(place.number, span.end) - shared)} of them belong to other messages now"
        )
    return replace(place, number=shared)


def resolved(
    place: OffsetLimit, span: Span, connection: BrokerConnection, options: Options, *, ending: bool
) -> int:
    """Return the position of a limit.

    Raises:
        SourceError: no message is there.
    """
    if place.kind == EARLIEST:
        return span.first
    if place.kind == LATEST:
        return span.end
    which = "ending" if ending else "starting"
    if place.kind == POSITION:
        place = _kept(place, span, connection, options)
        if place.number > span.end and not ending:
            raise SourceError(
                f"the option {which}Offsets says {place.number} for queue {options.queue!r}, which "
                f"ends at position {span.end}"
            )
        if place.number < span.first and not ending and options.delivery != PEEK:
            DataLossPolicy(options).report(
                f"the option {which}Offsets says {place.number} for queue {options.queue!r}, which "
                f"begins at position {span.first} by now"
            )
        if place.number > span.end:
            _LOG.warning(
                "the option endingOffsets says %d for queue %r, which ends at position %d: what "
                "comes there later is not read",
                place.number,
                options.queue,
                span.end,
            )
        return max(span.first, min(place.number, span.end))
    # Rounded up: the broker counts milliseconds, and the one before has earlier messages.
    later = span_of(connection, options, -(-place.number // _MICROS_PER_MS))
    if later.position >= later.end and not ending and options.strategy == "error":
        raise SourceError(
            f"queue {options.queue!r} has no message of {place} or later: choose an earlier time, "
            "or startingOffsetsByTimestampStrategy=latest"
        )
    return min(later.position, span.end)
