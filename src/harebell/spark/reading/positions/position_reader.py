"""Read a queue of Harebell by position: a stream, or any queue without consuming it.

Nothing is consumed or acknowledged; the checkpoint stores the position of the query. A stream
keeps its messages until retention removes them, so this is exactly once as long as the query
keeps up with it. Messages of other queues can be consumed by other clients at any time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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

STREAM = "stream"
_MICROS_PER_MS = 1000


class PositionReader:
    """Read one queue by position.

    Args:
        options: which queue, and how.
        connection: where the positions are looked up.
        kind: type of the queue.
    """

    def __init__(self, options: Options, connection: BrokerConnection, kind: str) -> None:
        self.queue = options.queue
        self._options = options
        self._connection = connection
        self._kind = kind
        self._losses = DataLossPolicy(options)
        self._begun: LogOffset | None = None
        self._target: int | None = None
        self._found: LogOffset | None = None

    def begin(self) -> QueueOffset:
        """Return the starting offset; by default the end of a stream, else the head."""
        if self._begun is None:
            default = OffsetLimit(LATEST if self._kind == STREAM else EARLIEST)
            place = self._options.starting.of(self.queue) or default
            span = span_of(self._connection, self._options)
            position = resolved(place, span, self._connection, self._options, ending=False)
            self._begun = LogOffset(span.generation, position)
        return self._begun

    def join(self) -> QueueOffset:
        """Return the first position, whatever the options set for a new query."""
        span = span_of(self._connection, self._options)
        return LogOffset(span.generation, span.first)

    def before(self, end: QueueOffset) -> QueueOffset:
        """Return the first position of the queue."""
        return replace(self._own(end), position=span_of(self._connection, self._options).first)

    def prepare(self) -> None:
        """Remember the end of the queue."""
        self._target = span_of(self._connection, self._options).end

    def available(self, start: QueueOffset) -> int:
        """Return the number of positions after an offset."""
        span = span_of(self._connection, self._options)
        return max(0, span.end - self._checked(self._own(start), span).position)

    def advance(self, start: QueueOffset, max_messages: int, byte_count: int | None) -> QueueOffset:
        """Return the offset after at most this many messages."""
        here = self._own(start)
        span = span_of(self._connection, self._options)
        here = self._checked(here, span)
        end = span.end if self._target is None else min(span.end, self._target)
        end = min(end, here.position + max_messages)
        if byte_count is not None and span.messages:
            # The broker reports the size of all messages together.
            size = max(1, span.octets // span.messages)
            end = min(end, here.position + max(1, byte_count // size))
        if end <= here.position:
            return start
        self._found = LogOffset(span.generation, end)
        return self._found

    def extend(
        self, start: QueueOffset, end: QueueOffset, max_messages: int, byte_count: int | None
    ) -> QueueOffset:
        """Return a later end."""
        return self.advance(end, max_messages, byte_count)

    def plan(self, start: QueueOffset, end: QueueOffset) -> list[OffsetRange]:
        """Return the range between two offsets."""
        first, last = self._own(start), self._own(end)
        if self._options.delivery == AT_MOST_ONCE and last != self._found:
            return []
        span = span_of(self._connection, self._options)
        here = self._checked(first, span)
        if last.generation != span.generation:
            return []
        position = min(here.position, last.position)
        messages = last.position - position
        return [OffsetRange(self.queue, span.generation, position, last.position, messages)]

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
            return LogOffset(span.generation, span.first)
        if offset.position > span.end:
            self._losses.report(
                f"the checkpoint has read queue {self.queue!r} up to position {offset.position}, "
                f"but it ends at {span.end}: the broker has lost messages, or its data directory "
                "is an older one"
            )
            return replace(offset, position=span.end)
        if self._kind == STREAM and offset.position < span.first:
            self._losses.report(
                f"positions {offset.position} to {span.first - 1} of stream {self.queue!r} are "
                f"gone: retention has let them go before they were read, and {span.first} is the "
                "first that is kept"
            )
            return replace(offset, position=span.first)
        return offset

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
    except NotFound as error:
        raise no_queue(options) from error
    return span if options.tier is None else with_tier(span, options, time_ms)


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
        return max(span.first, min(place.number, span.end))
    found = span_of(connection, options, -(-place.number // _MICROS_PER_MS))
    late = found.position >= found.end
    if late and not ending and options.strategy == "error":
        raise SourceError(
            f"queue {options.queue!r} has no message of {place} or later: choose an earlier time, "
            "or startingOffsetsByTimestampStrategy=latest"
        )
    return min(found.position, span.end)
