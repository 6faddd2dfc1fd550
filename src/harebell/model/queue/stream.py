"""The stream: an append-only log that any number of consumers read, each at its own place.

    log      | gone by retention | kept kept kept kept kept kept | not on disk yet |
                                        ^ cursor     ^ cursor    ^ visible         ^ end

Nothing is taken out by reading. What consumers acknowledge is credit for more, and where they want
that, the offset after which the next consumer of the same tag goes on. A message becomes visible
when it is on disk: after a power failure no offset means another message than consumers saw.

What a consumer has to acknowledge is known by its offset and by whom its offsets are kept for:

    position of a delivery  = offset << 16 | number of the consumer tag, 0 when nothing is kept
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.limits import (
    STREAM_RECENT_BODY_BYTES,
    STREAM_RECENT_MESSAGES,
    STREAM_SCAN_MESSAGES,
    STREAM_SEGMENT_LEAST_BYTES,
)
from harebell.base.message import Message, copy_message
from harebell.base.ports import Commit, Log
from harebell.base.work import Work
from harebell.kernels.batches import BatchBuilder
from harebell.model.consumer import Consumer
from harebell.model.editor import Editor
from harebell.model.queue.contract import ACCEPTED, PENDING, Queue
from harebell.model.queue.features.consumers import dismiss
from harebell.model.queue.features.no_local import Skipped
from harebell.model.queue.offsets import (
    FILTER_VALUE,
    MATCH_UNFILTERED,
    OFFSET,
    TRACKING,
    check_offset,
    span_ms,
    start_position,
    wanted_values,
)
from harebell.model.queue.position_range import Span, check_kept, span_of
from harebell.model.queue.tracking import Tracking
from harebell.model.queue_context import QueueContext
from harebell.model.resource import RESERVED_PREFIX, precondition, rendered

KIND = "stream"
_NO_WORK = Work()
_SHIFT = 16
_TAG = (1 << _SHIFT) - 1
_SCAN = STREAM_SCAN_MESSAGES
_PENDING = PENDING
_ACCEPTED = ACCEPTED
_FILTER_NAME = FILTER_VALUE.encode()
_RECENT = STREAM_RECENT_MESSAGES - 1
_RECENT_OCTETS = STREAM_RECENT_BODY_BYTES


class Cursor:
    """Where one consumer is.

    Args:
        consumer: whose cursor it is.
        position: of the next message it may get.
        wanted: the filter values it wants; None for everything.
        unfiltered: whether it wants messages without a filter value too.
        number: of its tag where offsets are kept for it, else 0.

    Attributes:
        skipped: what its own connection published, if it does not want that.
        at: its index among the cursors of the stream.
    """

    __slots__ = ("at", "consumer", "number", "position", "skipped", "unfiltered", "wanted")

    def __init__(
        self,
        consumer: Consumer,
        position: int,
        wanted: frozenset[str] | None,
        unfiltered: bool,
        number: int,
    ) -> None:
        self.consumer = consumer
        self.position = position
        self.wanted = wanted
        self.unfiltered = unfiltered
        self.number = number
        self.at = 0
        self.skipped = Skipped() if consumer.excluded else None


class StreamQueue(Queue):
    """A log and its readers.

    Args:
        name: its name.
        vhost: the name of its vhost.
        log: where its messages are kept.
        commit: of the store.
        tracking: the offsets kept for consumer tags.
        segment_octets: how much may be published before retention is looked at.
        **options: as for `Queue`.
    """

    def __init__(
        self,
        name: str,
        vhost: str,
        log: Log,
        commit: Commit,
        tracking: Tracking,
        segment_octets: int,
        **options: Any,
    ) -> None:
        super().__init__(name, vhost, **options)
        self.kind = KIND
        self.ticks = True
        self._log = log
        self._commit = commit
        self._tracking = tracking
        self._declared_octets = segment_octets
        self._segment_octets = segment_octets
        self._max_octets = 0
        self._max_age = 0
        self._grown = 0
        # What is on disk, and of that what may be seen: all but what is kept back.
        self._safe = self._visible = log.end()
        self._barrier = -1
        self._staged: list[int] = []
        self._ticket = 0
        self._reached = 0
        self._flying: list[tuple[int, int]] = []
        self._cursors: list[Cursor] = []
        self._cursor_of: dict[Consumer, Cursor] = {}
        self._next = 0
        self._put_off = False
        self._work = _NO_WORK
        self._shared = False
        self._locals = 0
        self._recent: list[Message | None] = []
        self._context: QueueContext | None = None
        self._editor: Editor | None = None
        self._clock = Clock()

    def join(self, context: QueueContext) -> None:
        """Take the clock and what decodes headers from the vhost."""
        self._context = context
        self._editor = context.editor
        self._clock = context.clock
        self._work = context.timers.work

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take what is kept at most, and how long."""
        self._max_octets = settings.get("max-length-bytes", 0)
        self._max_age = span_ms(settings.get("max-age", "")) or 0
        wanted = settings.get("stream-max-segment-size-bytes", 0) or self._declared_octets
        if wanted != self._declared_octets:
            wanted = max(wanted, STREAM_SEGMENT_LEAST_BYTES)
        if wanted != self._segment_octets:
            self._segment_octets = wanted
            self._log.cut_at(wanted)

    # --- messages in ----------------------------------------------------------------------------

    def publish(self, message: Message) -> int:
        """Append a message. Consumers get it when it is on disk."""
        self.published += 1
        position = self._log.append(message)
        if self._locals and message.origin:
            self._note_origin(position, message.origin)
        self._grown += len(message.body) + len(message.raw)
        if self._grown >= self._segment_octets:
            self._retain()
        ticket = self._commit.ticket
        if self._commit.done >= ticket:
            # Memory: nothing will ever be safer than it is now.
            self._show(position + 1)
            if self._cursors:
                self.drain()
            return _ACCEPTED
        if ticket != self._ticket:
            self._await(ticket)
        self._reached = position + 1
        return _PENDING

    def _show(self, end: int) -> int:
        """What stands below a position is on disk."""
        self._safe = end
        self._visible = end if self._barrier < 0 else min(end, self._barrier)
        return 0

    # --- the rows of a batch (see staging.py) -----------------------------------------------------

    def begin_batch(self) -> int:
        """What comes from now on is shown to nobody."""
        self.staging = True
        self._barrier = self._log.end()
        return 0

    def stage(self, message: Message) -> int:
        """Append a row of the batch."""
        position = self._log.end()
        staged = self._staged
        if staged and staged[-1] == position:
            staged[-1] = position + 1
        else:
            staged += (position, position + 1)
        return self.publish(message)

    def commit_batch(self) -> int:
        """The batch is committed: it can be read, as far as it is on disk."""
        self.staging = False
        self._barrier = -1
        self._staged = []
        self._show(self._safe)
        self.drain()
        return 0

    def roll_back_batch(self) -> int:
        """The batch is refused: its rows are passed over."""
        for at in range(0, len(self._staged), 2):
            self._log.settle_range(self._staged[at], self._staged[at + 1])
        return self.commit_batch()

    def _note_origin(self, position: int, origin: int) -> int:
        """A message was published by a connection whose consumers may not want it."""
        for cursor in self._cursors:
            if cursor.skipped is not None and cursor.consumer.excluded == origin:
                cursor.skipped.note(position)
        return 0

    def _await(self, ticket: int) -> int:
        """The first message for another commit."""
        if self._reached > self._safe:
            self._flying.append((self._ticket, self._reached))
        self._ticket = ticket
        if self._context is not None and self not in self._context.awaiting:
            self._context.awaiting.append(self)
        return 0

    def committed(self) -> None:
        """A commit is on disk: what was part of it is visible."""
        done = self._commit.done
        while self._flying and self._flying[0][0] <= done:
            self._show(self._flying.pop(0)[1])
        if self._ticket <= done:
            self._show(max(self._safe, self._reached))
        elif self._context is not None and self not in self._context.awaiting:
            self._context.awaiting.append(self)
        self.drain()

    def tick(self) -> None:
        """Let old segments go, and write down offsets."""
        self._retain()
        self._tracking.write()

    def _retain(self) -> int:
        """Let whole segments go that are too much or too old."""
        self._grown = 0
        if self._max_octets or self._max_age:
            moment = max(self._clock.ms - self._max_age, 0) if self._max_age else 0
            self._log.retain(self._max_octets, moment)
            self._share()
        return 0

    def _share_with(self, count: int) -> int:
        """There are so many consumers now."""
        if self._shared != (count > 1):
            self._share()
        return 0

    def _share(self) -> int:
        """Begin to keep what one consumer has just read for the others, or let all of it go.

        They read the same messages one after the other, and most of what a delivery costs is to
        make a message of the octets in the log.
        """
        self._shared = len(self._cursors) > 1
        self._recent = [None] * (_RECENT + 1) if self._shared else []
        return 0

    def ready_count(self) -> int:
        """Messages that are kept."""
        if self._barrier < 0:
            return self._log.live()
        return self._log.reach(0, self._barrier, self._barrier, -1)[1]

    # --- messages out ---------------------------------------------------------------------------

    def drain(self) -> int:
        """Serve consumers that have credit with what they have not seen, in turns."""
        visible = self._visible
        count = len(self._cursors)
        for _ in range(count):
            if self._next >= count:
                self._next = 0
            cursor = self._cursors[self._next]
            self._next += 1
            if cursor.position < visible:
                self._feed(cursor)
                if self._work.spent >= self._work.look_at and self._work.look():
                    self._drain_later()
                    break
        return 0

    def _drain_later(self) -> int:
        """Enough was read in this turn; the others have theirs."""
        if not self._put_off:
            self._put_off = True
            self._work.later(self._drain_again)
        return 0

    def _drain_again(self) -> bool:
        """Serve those who have credit still."""
        self._put_off = False
        self.drain()
        return True

    def serve(self, consumer: Consumer | None) -> int:
        """A consumer has credit again, which changes nothing for the others."""
        cursor = None if consumer is None else self._cursor_of.get(consumer)
        if cursor is not None and cursor.position < self._visible:
            self._feed(cursor)
        return 0

    def _feed(self, cursor: Cursor) -> int:
        """Serve one consumer as far as it goes."""
        consumer = cursor.consumer
        position = cursor.position
        visible = self._visible
        passed = 0
        while position < visible and consumer.ready():
            if cursor.skipped is not None:
                behind = cursor.skipped.behind(position)
                if behind != position:
                    position = behind
                    continue
            message = self._recent[position & _RECENT] if self._shared else None
            if message is None or message.offset != position:
                if self._log.has_large and self._log.far(position):
                    self._log.fetch(position, self._drain_later)
                    break
                message = self._log.read(position)
                if message is None:
                    # Damaged, or gone by retention.
                    position = self._log.next(position + 1)
                    continue
                if message.timestamp == 0:
                    # A store that gives out the object it was given: other queues may hold it too.
                    message = copy_message(message, message.exchange, message.routing_key)
                message.offset = position
                if self._shared and len(message.body) <= _RECENT_OCTETS:
                    self._recent[position & _RECENT] = message
            if cursor.wanted is not None and not self._wants(cursor, message):
                position += 1
                passed += 1
                self._work.spent += 1
                if passed >= _SCAN:
                    consumer.again()
                    break
                continue
            self.unacked += 1
            self._work.spent += 1
            # A cursor is moved first: what follows may look at it again.
            cursor.position = position + 1
            consumer.deliver(message, position << _SHIFT | cursor.number, False)
            position += 1
        cursor.position = position
        return 0

    def _wants(self, cursor: Cursor, message: Message) -> bool:
        """Whether a consumer's filter lets a message through."""
        value: Any = None
        # Most messages without the header are told by their octets, without decoding.
        if message.has_headers and _FILTER_NAME in message.raw and self._editor is not None:
            value = self._editor.headers_of(message).get(FILTER_VALUE)
        if not isinstance(value, str):
            return cursor.unfiltered
        return cursor.wanted is not None and value in cursor.wanted

    def settle(self, position: int) -> int:
        """A consumer has credit for another message."""
        if not self.deleted:
            self.unacked -= 1
            if position & _TAG:
                self._tracking.acknowledged(position & _TAG, position >> _SHIFT)
        return 0

    def reject(self, position: int) -> int:
        """The same as an acknowledgement."""
        return self.settle(position)

    def requeue(self, position: int) -> int:
        """Nothing returns to a stream; the consumer has credit again."""
        if not self.deleted:
            self.unacked -= 1
        return 0

    def sync_soon(self) -> int:
        """Nothing is settled in a stream."""
        return ACCEPTED

    def get(self) -> tuple[Message, int, bool] | None:
        """There is no next message for everybody."""
        raise self._unsupported("basic.get")

    def purge(self) -> int:
        """Messages go by retention alone."""
        raise self._unsupported("queue.purge")

    def _unsupported(self, what: str) -> Refusal:
        thing = rendered("queue", self.name, self.vhost)
        return Refusal(ErrorKind.NOT_IMPLEMENTED, f"{what} not supported by stream queues {thing}")

    # --- ranges ---------------------------------------------------------------------------------

    def span(self, moment: int) -> Span:
        """What is kept and on disk."""
        hidden = self._log.live() - self.ready_count()
        return span_of(self._log, self._visible, moment, hidden)

    def pour(self, first: int, end: int, into: BatchBuilder) -> int:
        """What is kept and on disk of these offsets."""
        end = min(end, self._visible)
        first = check_kept(self.name, self.vhost, first, self._log.first(), end, into)
        into.marks(0, 0, None, None, None)
        return self._log.pour(first, end, into)

    # --- consumers ------------------------------------------------------------------------------

    def check_consumer(
        self,
        tag: str,
        arguments: Mapping[str, Any],
        *,
        no_ack: bool,
        exclusive: bool,
        prefetch: int,
    ) -> bool:
        """Refuse a consumer that cannot say how much it takes, or where it begins.

        The flag exclusive means nothing here, as with RabbitMQ.
        """
        thing = rendered("queue", self.name, self.vhost)
        if no_ack:
            raise Refusal(
                ErrorKind.NOT_IMPLEMENTED,
                f"automatic acknowledgement not supported by stream {thing}",
            )
        if not prefetch:
            raise precondition(f"consumer prefetch count is not set for stream {thing}")
        check_offset(thing, arguments)
        if arguments.get(TRACKING) is True:
            self._tracking.check(tag)
        return False

    def check_prefetch_global(self) -> None:
        """One limit for a whole channel is refused, as with RabbitMQ."""
        thing = rendered("queue", self.name, self.vhost)
        raise Refusal(ErrorKind.NOT_IMPLEMENTED, f"{thing} does not support global qos")

    def add_consumer(self, consumer: Consumer) -> None:
        """Serve a new consumer from where it wants to begin."""
        arguments = consumer.arguments
        number = 0
        kept = -1
        if arguments.get(TRACKING) is True and not consumer.tag.startswith(RESERVED_PREFIX):
            # Nobody comes back with a tag that the broker made up.
            number, kept = self._tracking.number_of(consumer.tag)
        value = arguments.get(OFFSET, kept + 1 if number else "next")
        self.consumers.add(consumer)
        self.had_consumers = True
        cursor = Cursor(
            consumer,
            start_position(value, self._log, self._visible, self._clock.ms),
            wanted_values(arguments),
            arguments.get(MATCH_UNFILTERED) is True,
            number,
        )
        cursor.at = len(self._cursors)
        self._cursors.append(cursor)
        self._cursor_of[consumer] = cursor
        self._locals += cursor.skipped is not None
        self._share_with(len(self._cursors))
        if cursor.position < self._visible:
            self._feed(cursor)

    def add_browser(self, consumer: Consumer) -> None:
        """To read a stream is to take nothing from it."""
        self.add_consumer(consumer)

    def remove_consumer(self, consumer: Consumer) -> None:
        """Serve a consumer no longer; where it got to is written down."""
        cursor = self._cursor_of.pop(consumer, None)
        if cursor is not None:
            self.consumers.remove(consumer)
            last = self._cursors.pop()
            if last is not cursor:
                # Its place is taken by the last one: there may be ten thousand behind it.
                self._cursors[cursor.at] = last
                last.at = cursor.at
            self._locals -= cursor.skipped is not None
            self._share_with(len(self._cursors))
            self._tracking.write()

    def delete(self) -> int:
        """Tell the consumers, drop everything."""
        count = self._log.live()
        self.deleted = True
        self._cursors = []
        self._cursor_of = {}
        self._share()
        dismiss(self.consumers.take_all(), self._work)
        self._log.delete()
        self._tracking.forget()
        self.unacked = 0
        self.itself = ()
        return count
