"""The stream: an append-only log that any number of consumers read, each at its own offset.

    log      | removed by retention | kept kept kept kept kept | not on disk yet |
                                  ^ cursor       ^ cursor ^ visible        ^ end

Reading removes nothing. An acknowledgement gives the consumer credit for more messages. With
offset tracking it also stores the offset after which the next consumer with the same tag continues.
A message becomes visible when it is on disk, so that after a power failure every offset still means
the message that consumers saw.

The position of a delivery is made of the offset and the number of the consumer tag:

    position of a delivery  = offset << 16 | number of the consumer tag, 0 without tracking
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Cpdef, Done, Py, i32, i64, isize
from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import Message, copy_message
from harebell.base.ports import Commit, Log
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.rows import Rows
from harebell.model.consumer import Consumer
from harebell.model.editor import Editor
from harebell.model.limits import (
    STREAM_RECENT_BODY_BYTES,
    STREAM_RECENT_MESSAGES,
    STREAM_SCAN_MESSAGES,
    STREAM_SEGMENT_MIN_BYTES,
)
from harebell.model.queue.arguments import STREAM_EXPIRES
from harebell.model.queue.contract import ACCEPTED, PENDING, Queue
from harebell.model.queue.features.consumers import dismiss
from harebell.model.queue.features.looker import Looker
from harebell.model.queue.features.no_local import Skipped
from harebell.model.queue.features.queue_expiry import QueueExpiry
from harebell.model.queue.offsets import (
    FILTER_VALUE,
    MATCH_UNFILTERED,
    OFFSET,
    TRACKING,
    check_offset,
    filter_values,
    span_ms,
    start_position,
)
from harebell.model.queue.position_range import MessageRange, check_kept, span_of
from harebell.model.queue.tracking import Tracking
from harebell.model.queue_context import QueueContext
from harebell.model.resource import RESERVED_PREFIX, precondition, rendered

if TYPE_CHECKING:
    from harebell.model.queue.browse import BrowseCursor, Start

KIND = "stream"
_SHIFT: i32 = 16
_TAG: i64 = (1 << _SHIFT) - 1
_SCAN: i32 = STREAM_SCAN_MESSAGES
_PENDING: i32 = PENDING
_ACCEPTED: i32 = ACCEPTED
_FILTER_NAME: C[bytes] = FILTER_VALUE.encode()
_RECENT: i32 = STREAM_RECENT_MESSAGES - 1
_RECENT_BYTES: isize = STREAM_RECENT_BODY_BYTES


class Cursor:
    """The read position and the filter of one consumer.

    Args:
        consumer: who reads the stream from here.
        position: position of the next message it may get.
        values: filter values to deliver; None for all messages.
        unfiltered: whether to deliver messages without a filter value too.
        number: number of its tag if its offset is tracked, else 0.

    Attributes:
        filters: whether it gets some of the messages only.
        skipped: with no-local, the messages that its own connection published.
        index: its index among the cursors of the stream.
    """

    def __init__(
        self,
        consumer: Consumer,
        position: i64,
        values: frozenset[str] | None,
        unfiltered: bool,
        number: i32,
    ) -> None:
        self.consumer = consumer
        self.position = position
        self.values = values
        self.unfiltered = unfiltered
        self.number = number
        self.filters = values is not None or consumer.selector is not None
        self.index: isize = 0
        self.skipped = Skipped() if consumer.excluded else None


class StreamQueue(Queue):
    """A stream: one log and the cursors of its consumers.

    Args:
        name: unique in its vhost.
        vhost: the name of its vhost.
        log: keeps its messages.
        commit: the group commit of the store.
        tracking: the stored offsets of consumer tags.
        segment_bytes: bytes that are published between two checks of retention.
        **options: as for `Queue`.
    """

    def __init__(
        self,
        name: str,
        vhost: str,
        log: Log,
        commit: Commit,
        tracking: Tracking,
        segment_bytes: i64,
        **options: Any,
    ) -> None:
        super().__init__(name, vhost, **options)
        self.step = 1 << _SHIFT
        self.kind = KIND
        self.ticks = True
        self._log = log
        self._commit = commit
        self._tracking = tracking
        self._declared_bytes = segment_bytes
        self._segment_bytes = segment_bytes
        self._max_bytes: i64 = 0
        self._max_age: i64 = 0
        self._tier = ""
        self._grown: i64 = 0
        # The ends of the log on disk, and of the visible log, which has no rows of an open batch.
        self._safe: i64 = log.end()
        self._visible: i64 = self._safe
        self._barrier: i64 = -1
        self._staged: list[int] = []
        self._ticket: i64 = 0
        self._reached: i64 = 0
        self._flying: list[tuple[int, int]] = []
        self._cursors: list[Cursor] = []
        self._cursor_of: dict[Consumer, Cursor] = {}
        self._next: isize = 0
        self._shared = False
        self._locals: i32 = 0
        self._recent: list[Message | None] = []
        self._context: QueueContext | None = None
        self._editor: Editor | None = None
        self._looker = Looker(None, None)
        self._clock: Py[Clock] = Clock()
        self._expires: QueueExpiry | None = None

    def join(self, context: QueueContext) -> None:
        """Take the clock and the header decoder of the vhost, and begin to expire."""
        self._context = context
        self._editor = context.editor
        self._clock = context.clock
        self._looker = Looker(context, None)
        self.work = context.timers.work
        unused_ms = self.arguments.get(STREAM_EXPIRES)
        if unused_ms is not None:
            self._expires = QueueExpiry(self, context.timers, context.drop_queue)
            self._expires.limit(unused_ms)

    def cut_tracking(self) -> list[str]:
        """Take back stored offsets that the log has lost; return a log line for each."""
        return self._tracking.cut_at(self._log.end())

    def declared(self) -> None:
        """Restart the time of `x-stream-expires`: something uses the stream."""
        if self._expires is not None:
            self._expires.used()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Set the retention: how many bytes are kept, and for how long."""
        self._max_bytes = settings.get("max-length-bytes", 0)
        self._max_age = span_ms(settings.get("max-age", "")) or 0
        self._tier = settings.get("tier", "")
        segment_bytes = settings.get("stream-max-segment-size-bytes", 0) or self._declared_bytes
        # The factory has checked the declared size, a policy may have any.
        if segment_bytes != self._declared_bytes:
            segment_bytes = max(segment_bytes, STREAM_SEGMENT_MIN_BYTES)
        if segment_bytes != self._segment_bytes:
            self._segment_bytes = segment_bytes
            self._log.cut_at(segment_bytes)

    # --- messages in ----------------------------------------------------------------------------

    def publish(self, message: Message) -> i32:
        """Append a message. Consumers get it when it is on disk."""
        if message.once is not None:
            return self.publish_once(message)
        if message.exchange is not self.source:
            self.arrives_from(message.exchange)
        self.counters.publish += 1
        position: i64 = self._log.append(message)
        if self._locals and message.origin:
            self._note_origin(position, message.origin)
        return self._appended(position + 1, len(message.body) + len(message.raw))

    def _appended(self, end: i64, byte_count: i64) -> i32:
        """Show what was appended up to a position, or wait for its commit."""
        self._grown += byte_count
        if self._grown >= self._segment_bytes:
            self._retain()
        ticket: i64 = self._commit.ticket
        if self._commit.done >= ticket:
            # A log in memory is never committed, so the message is visible at once.
            self._show(end)
            if self._cursors:
                self.drain()
            return _ACCEPTED
        # One wait for all messages of a commit.
        if ticket != self._ticket:
            self._await(ticket)
        self._reached = end
        return _PENDING

    def _show(self, end: i64) -> Done:
        """Make the messages below a position visible: they are on disk."""
        self._safe = end
        self._visible = end if self._barrier < 0 else min(end, self._barrier)
        return 0

    # --- the rows of a batch (see staging.py) -----------------------------------------------------

    def begin_batch(self) -> Done:
        """Hide messages that are appended from now on."""
        self.staging = True
        self._barrier = self._log.end()
        return 0

    def stage(self, message: Message) -> i32:
        """Append a row of the batch."""
        self._note_rows(1)
        return self.publish(message)

    def stage_rows(self, rows: Rows, first: isize, end: isize, like: Message) -> i32:
        """Append rows of the batch that differ in their bodies only."""
        if like.origin:
            # `publish` notes each of them for no-local consumers.
            return self._stage_each(rows, first, end, like)
        count: i64 = end - first
        self._note_rows(count)
        if like.exchange is not self.source:
            self.arrives_from(like.exchange)
        self.counters.publish += count
        behind: i64 = self._log.append_rows(rows, first, end, like) + count
        return self._appended(behind, rows.body_bytes(first, end) + count * len(like.raw))

    def _note_rows(self, count: i64) -> Done:
        """Note that the next positions are rows of the batch."""
        position: i64 = self._log.end()
        staged: list[int] = self._staged
        if staged and staged[-1] == position:
            staged[-1] = position + count
        else:
            staged += (position, position + count)
        return 0

    def commit_batch(self) -> Done:
        """Make the rows of the batch visible, as far as they are on disk."""
        self.staging = False
        self._barrier = -1
        self._staged = []
        self._show(self._safe)
        self.drain()
        return 0

    def roll_back_batch(self) -> Done:
        """Discard the rows of the batch: consumers skip their positions."""
        for first, end in zip(self._staged[::2], self._staged[1::2], strict=True):
            self._log.settle_range(first, end)
        return self.commit_batch()

    def _note_origin(self, position: i64, origin: i64) -> Done:
        """Note a message that no-local consumers of its connection must not get."""
        cursor: Cursor
        for cursor in self._cursors:
            if cursor.skipped is not None and cursor.consumer.excluded == origin:
                cursor.skipped.note(position)
        return 0

    def _await(self, ticket: i64) -> Done:
        """Wait for the next commit, if nothing of this queue waits for it yet."""
        # A commit may still be written while the next one gathers.
        if self._reached > self._safe:
            self._flying.append((self._ticket, self._reached))
        self._ticket = ticket
        if self._context is not None and self not in self._context.awaiting:
            self._context.awaiting.append(self)
        return 0

    def committed(self) -> None:
        """Make visible what the finished commit wrote."""
        done = self._commit.done
        while self._flying and self._flying[0][0] <= done:
            self._show(self._flying.pop(0)[1])
        if self._ticket <= done:
            self._show(max(self._safe, self._reached))
        # The context calls each waiting queue once, so wait again.
        elif self._context is not None and self not in self._context.awaiting:
            self._context.awaiting.append(self)
        self.drain()

    def tick(self) -> None:
        """Apply retention, and store tracked offsets."""
        self._retain()
        self._tracking.write()

    def _retain(self) -> Cpdef[Done]:
        """Remove whole segments that exceed the size or age limit.

        With a tier only those whose messages it has: the offset that its consumer tag has
        acknowledged says how far it is.
        """
        self._grown = 0
        if self._max_bytes or self._max_age:
            moment = max(self._clock.ms - self._max_age, 0) if self._max_age else 0
            # -1: without a tier nothing keeps segments back.
            below = self._tracking.offset_of(self._tier) + 1 if self._tier else -1
            self._log.retain(self._max_bytes, moment, below)
            # Messages that retention has removed must not be delivered from memory.
            self._share()
        return 0

    def _share_with(self, count: isize) -> Done:
        """Adapt to the number of consumers."""
        if self._shared != (count > 1):
            self._share()
        return 0

    def _share(self) -> Cpdef[Done]:
        """Keep what one consumer has just read for the others, or drop all that was kept.

        Consumers read the same messages one after the other, and decoding a message from the bytes
        of the log is most of the cost of a delivery.
        """
        self._shared = len(self._cursors) > 1
        self._recent = [None] * (_RECENT + 1) if self._shared else []
        return 0

    def ready_count(self) -> i64:
        """Return how many messages are kept."""
        if self._barrier < 0:
            return self._log.live()
        return self._log.live_in(0, self._barrier)

    def heads_by_log(self) -> list[tuple[Log, int]]:
        """Return the log, with its first position; nothing if it is empty."""
        return [(self._log, self._log.first())] if self._log.live() else []

    def byte_count(self) -> int:
        """Return the bytes of its log."""
        return self._log.byte_count()

    # --- messages out ---------------------------------------------------------------------------

    def drain(self) -> Done:
        """Deliver new messages to the consumers that have credit, round robin."""
        visible: i64 = self._visible
        count: isize = len(self._cursors)
        for _ in range(count):
            # `_next` outlives the turn: else the same consumers would always come first.
            if self._next >= count:
                self._next = 0
            cursor: Cursor = self._cursors[self._next]
            self._next += 1
            if cursor.position < visible:
                self._feed(cursor)
                if self.work.spent >= self.work.check_at and self.work.check():
                    self.drain_later()
                    break
        return 0

    def serve(self, consumer: Consumer | None) -> Done:
        """Deliver to one consumer that got credit; the others are not affected."""
        cursor: Cursor | None = None if consumer is None else self._cursor_of.get(consumer)
        if cursor is not None and cursor.position < self._visible:
            self._feed(cursor)
        return 0

    def _feed(self, cursor: Cursor) -> Done:
        """Deliver to one consumer until its credit, the log or the work budget ends."""
        consumer: Consumer = cursor.consumer
        position: i64 = cursor.position
        visible: i64 = self._visible
        passed: i32 = 0
        while position < visible and consumer.ready():
            if cursor.skipped is not None:
                behind: i64 = cursor.skipped.behind(position)
                if behind != position:
                    position = behind
                    continue
            message: Message | None = self._recent[position & _RECENT] if self._shared else None
            if message is None or message.offset != position:
                if self._log.has_large and self._log.is_spilled(position):
                    # Reading it at once would stop the broker. Only this consumer waits.
                    self._log.load_spilled(position, self.drain_later)
                    break
                message = self._log.read(position)
                if message is None:
                    # Damaged, or removed by retention.
                    position = self._log.next(position + 1)
                    continue
                if message.timestamp == 0:
                    # The log in memory returns the same object, which other queues may hold too.
                    message = copy_message(message, message.exchange, message.routing_key)
                message.offset = position
                if self._shared and len(message.body) <= _RECENT_BYTES:
                    self._recent[position & _RECENT] = message
            if cursor.filters and not self._wants(cursor, message, position):
                position += 1
                passed += 1
                self.work.spent += 1
                if passed >= _SCAN or (self.work.spent >= self.work.check_at and self.work.check()):
                    # A filter that lets nothing through would read the whole log in one turn.
                    consumer.again()
                    break
                continue
            self.unacked += 1
            self.work.spent += 1
            # Move the cursor first: `deliver` may come back here and read it.
            cursor.position = position + 1
            self.count_delivery(consumer, False)
            consumer.deliver(message, position << _SHIFT | cursor.number, False)
            position += 1
        cursor.position = position
        return 0

    def _wants(self, cursor: Cursor, message: Message, position: i64) -> C[bool]:
        """True if the filter and the selector of a consumer let a message through."""
        selector = cursor.consumer.selector
        if selector is not None and not self._looker.wants(selector, message, position):
            return False
        if cursor.values is None:
            return True
        value: Any = None
        # For most messages without the header the encoded bytes tell; no decoding is needed.
        if message.has_headers and _FILTER_NAME in message.raw and self._editor is not None:
            value = self._editor.headers_of(message).get(FILTER_VALUE)
        if not isinstance(value, str):
            return cursor.unfiltered
        return value in cursor.values

    def settle(self, position: i64) -> Done:
        """Give a consumer credit for another message, and track its offset."""
        if not self.deleted:
            self.unacked -= 1
            if position & _TAG:
                self._tracking.acknowledged(position & _TAG, position >> _SHIFT)
        return 0

    def settle_some(self, position: i64, count: i64) -> Done:
        """Give a consumer credit for several messages, and track the offset of the last."""
        if not self.deleted:
            self.unacked -= count - 1
            self.settle(position + (count - 1) * self.step)
        return 0

    def reject(self, position: i64) -> Done:
        """Treat a rejection as an acknowledgement, as RabbitMQ: a stream keeps its messages."""
        return self.settle(position)

    def requeue(self, position: i64) -> Done:
        """Give the consumer credit again; nothing returns to a stream."""
        # The offset is not tracked: the consumer has not said that it is done with the message.
        if not self.deleted:
            self.unacked -= 1
        return 0

    def sync_soon(self) -> i32:
        """Return ACCEPTED: nothing is settled in a stream."""
        return ACCEPTED

    def get(self) -> tuple[Message, int, bool] | None:
        """Refuse basic.get."""
        raise self._unsupported("basic.get")

    def purge(self) -> int:
        """Refuse to purge: only retention removes messages."""
        raise self._unsupported("queue.purge")

    def _unsupported(self, what: str) -> Refusal:
        resource = rendered("queue", self.name, self.vhost)
        return Refusal(
            ErrorKind.NOT_IMPLEMENTED, f"{what} not supported by stream queues {resource}"
        )

    # --- ranges ---------------------------------------------------------------------------------

    def span(self, moment: int) -> MessageRange:
        """Return the range of the messages that are on disk."""
        self.declared()
        hidden = self._log.live() - self.ready_count()
        return span_of(self._log, self._visible, moment, hidden)

    def append_to(self, first: int, end: int, into: BatchBuilder) -> int:
        """Return rows of the messages on disk in a range of offsets."""
        self.declared()
        end = min(end, self._visible)
        first = check_kept(self.name, self.vhost, first, self._log.first(), end, into)
        into.marks(0, 0, None, None, None)
        return self._log.append_to(first, end, into)

    def browse(self, start: Start, *, ready_only: bool = True) -> BrowseCursor:
        """Return a cursor that goes through the messages on disk."""
        # Imported here: most brokers never browse.
        from harebell.model.queue.browse_cursor import StreamCursor, first_of

        return StreamCursor(self._log, first_of(self._log, self._visible, start), self._visible)

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
        """Refuse a consumer without manual acknowledgements, prefetch or a valid start offset.

        The exclusive flag is ignored, as in RabbitMQ.
        """
        resource = rendered("queue", self.name, self.vhost)
        if no_ack:
            raise Refusal(
                ErrorKind.NOT_IMPLEMENTED,
                f"automatic acknowledgement not supported by stream {resource}",
            )
        if not prefetch:
            raise precondition(f"consumer prefetch count is not set for stream {resource}")
        check_offset(resource, arguments)
        if arguments.get(TRACKING) is True:
            self._tracking.check(tag)
        return False

    def check_prefetch_global(self) -> None:
        """Refuse a prefetch limit shared by a whole channel, as RabbitMQ does."""
        resource = rendered("queue", self.name, self.vhost)
        raise Refusal(ErrorKind.NOT_IMPLEMENTED, f"{resource} does not support global qos")

    def add_consumer(self, consumer: Consumer) -> None:
        """Add a consumer, which starts at the offset of its arguments."""
        arguments = consumer.arguments
        number = 0
        kept = -1
        if arguments.get(TRACKING) is True and not consumer.tag.startswith(RESERVED_PREFIX):
            # A generated tag is never used again, so its offset is not tracked.
            number, kept = self._tracking.number_of(consumer.tag)
        # An offset in the arguments wins over the tracked one. A new tag begins at the first
        # message: it has acknowledged nothing, and its tracked offset is -1.
        value = arguments.get(OFFSET, kept + 1 if number else "next")
        self.consumers.add(consumer)
        self.had_consumers = True
        cursor = Cursor(
            consumer,
            start_position(value, self._log, self._visible, self._clock.ms),
            filter_values(arguments),
            arguments.get(MATCH_UNFILTERED) is True,
            number,
        )
        cursor.index = len(self._cursors)
        self._cursors.append(cursor)
        self._cursor_of[consumer] = cursor
        self._locals += cursor.skipped is not None
        self._share_with(len(self._cursors))
        if cursor.position < self._visible:
            self._feed(cursor)

    def reading_of(self, consumer: Consumer) -> tuple[int, int] | None:
        """Return a consumer's next offset, and how many visible offsets are from there on."""
        cursor = self._cursor_of.get(consumer)
        if cursor is None:
            return None
        return cursor.position, max(0, self._visible - cursor.position)

    def add_browser(self, consumer: Consumer) -> None:
        """Refuse a browser: reading a stream takes nothing anyway."""
        self.add_consumer(consumer)

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove a consumer, and store its offset."""
        cursor = self._cursor_of.pop(consumer, None)
        if cursor is not None:
            self.consumers.remove(consumer)
            last = self._cursors.pop()
            if last is not cursor:
                # Move the last cursor to its index; shifting the list is slow with 10,000 of them.
                self._cursors[cursor.index] = last
                last.index = cursor.index
            self._locals -= cursor.skipped is not None
            self._share_with(len(self._cursors))
            # At once, not with the next tick: the consumer may be back before it.
            self._tracking.write()
            self.declared()

    def unstore(self) -> None:
        """Remove the stored offsets."""
        self._tracking.unstore()

    def delete(self) -> int:
        """Cancel the consumers, and delete the log."""
        count = self._log.live()
        self.deleted = True
        self._cursors = []
        self._cursor_of = {}
        self._share()
        dismiss(self.consumers.take_all(), self.work)
        self._log.delete()
        if self._expires is not None:
            self._expires.stop()
        self.unacked = 0
        self.itself = ()
        return count
