"""Ordering keys: a classic queue that keeps the order of each key; quorum queues build on it.

Messages of one key go in their order, to one consumer at a time; different keys go in parallel. A
consumer that has deliveries of a key out gets what follows of it, as far as its prefetch allows,
and nobody else does. What comes back blocks its key until nothing of it is out, and goes first; so
does what waits for its retry.

What is passed over, because its key is held, is remembered by its position. There is a limit for
that, at which the queue waits for who holds the keys; so memory is bounded. Without `x-group-key`
everything is as in a classic queue.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.limits import GROUP_SCAN_MESSAGES, GROUP_WAITING_MESSAGES
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.consumer import Consumer
from harebell.model.dead_letter import EXPIRED
from harebell.model.editor import Editor
from harebell.model.queue.arguments import GROUP_KEY
from harebell.model.queue.classic import ClassicQueue
from harebell.model.queue.groups import Groups, key_of
from harebell.model.resource import precondition, rendered

if TYPE_CHECKING:
    from harebell.model.surroundings import Surroundings

_SCAN_MOST = GROUP_SCAN_MESSAGES


class GroupedQueue(ClassicQueue):
    """A classic queue that keeps the order of each key, where it has an argument that says which.

    Args:
        name: its name.
        vhost: the name of its vhost.
        log: where its messages are kept; what is in it is ready.
        **options: as for `Queue`.

    Attributes:
        waiting_most: messages that are passed over and remembered.
    """

    KIND = "grouped"

    def __init__(self, name: str, vhost: str, log: Log, **options: Any) -> None:
        super().__init__(name, vhost, log, **options)
        self._key_name: str = self.arguments.get(GROUP_KEY, "")
        self._groups: Groups | None = Groups() if self._key_name else None
        self._editor: Editor | None = None
        self._key: Hashable | None = None
        self._passed_over = False
        self.waiting_most = GROUP_WAITING_MESSAGES

    def join(self, surroundings: Surroundings) -> None:
        """Take what looks into messages from the vhost, too."""
        super().join(surroundings)
        self._editor = surroundings.editor

    def _key_of(self, message: Message) -> Hashable | None:
        return None if self._editor is None else key_of(self._editor, self._key_name, message)

    # --- messages out ---------------------------------------------------------------------------

    def _pick(self) -> Consumer | None:
        """Nobody, where keys decide: that is looked at when the message is kept."""
        return self.consumers.pick() if self._groups is None else None

    def _taken(self, message: Message) -> int:
        """A message is in the log now: serve it at once if that is possible."""
        if self._groups is not None and self.consumers.count:
            self._deal(self._groups)
        return ClassicQueue._taken(self, message)  # noqa: SLF001  # what a queue without keys does

    def drain(self) -> int:
        """Serve ready consumers as long as there is a message for one of them."""
        if self._groups is None:
            return ClassicQueue.drain(self)
        if self.consumers.count:
            while self._local is not None and self._local.release_one():
                self._deal(self._groups)
            self._deal(self._groups)
        if self._overflow is not None:
            self._grown()
        if self._expiring:
            self._look_ahead()
        if self._places is not None:
            self._show_all()
        return 0

    def _deal(self, groups: Groups) -> int:
        """Hand out what may go: of held keys to who holds them, then of any to anybody."""
        passed = 0
        while self._ready > 0:
            consumer = self._who_goes_on(groups)
            goes_on = consumer is not None
            if consumer is not None:
                position = groups.first_of(consumer)
            else:
                consumer = self.consumers.pick_least_busy()
                if consumer is None:
                    return 0
                position = groups.first_free()
            message = self._take_one(groups, position)
            if message is not None:
                if not goes_on:
                    self.consumers.served(consumer)
                self._hand(message, consumer, goes_on)
            elif position < 0:
                passed += 1
                if not self._passed_over:
                    return 0
                if passed >= _SCAN_MOST:
                    consumer.again()
                    return 0
        return 0

    def _take_one(self, groups: Groups, position: int) -> Message | None:
        """The message that waits at a position, or without one the next that was not looked at."""
        message = self._take_at(groups, position) if position >= 0 else self._take_new(groups, None)
        if message is not None and self._again and (self._lasting or self._retry is not None):
            return self._counted(message)
        return message

    def _take_at(self, groups: Groups, position: int) -> Message | None:
        """A message that waits for its key; None when it cannot be read."""
        self._key, self._again = groups.take(position)
        self._position = position
        self._ready = self._order.count + groups.count
        return self._order.log.read(position)

    def _take_new(self, groups: Groups, holder: object) -> Message | None:
        """The next message that was not looked at yet; None when it has to wait, or there is none.

        Sets `_passed_over` when it has to wait.

        Args:
            groups: the keys.
            holder: whose keys it need not wait for.
        """
        self._passed_over = False
        if groups.count >= self.waiting_most:
            return None
        order = self._order
        message = order.take()
        if message is not None:
            self._position = order.position
            self._again = order.again
            self._key = self._key_of(message)
            if (
                self._key is not None
                and self._key in groups
                and (holder is None or not groups.goes_on(self._key, holder))
            ):
                groups.wait(self._key, order.position, again=order.again)
                self._passed_over = True
                message = None
        self._ready = order.count + groups.count
        return message

    def _hand(self, message: Message, consumer: Consumer, goes_on: bool) -> int:
        """Hand the message that was just taken to a consumer, who holds its key now.

        Args:
            message: the message.
            consumer: whose turn it is.
            goes_on: whether the consumer held the key before.
        """
        position = self._position
        if self._overflow is not None:
            self._left(self._overflow, message)
        if message.due and message.due <= self._clock.steady:
            self._bury(position, EXPIRED)
            return 0
        if self._local is not None:
            taker = self._local.taker(consumer, position, only=goes_on)
            if taker is None:
                self._put_aside(position)
                return 0
            consumer = taker
            self._again = self._local.again(position, self._again)
        self.unacked += 1
        if self._groups is not None and self._key is not None:
            self._groups.hold(position, self._key, consumer)
        consumer.deliver(message, position, self._again)
        return 0

    def _put_aside(self, position: int) -> int:
        """Nobody is ready for a message that was just taken, and its key waits with it."""
        groups, local = self._groups, self._local
        if groups is not None and local is not None:
            local.put_aside(position, self._again)
            if self._key is not None:
                groups.hold(position, self._key, self)
                groups.pause(position)
        return 0

    def _who_goes_on(self, groups: Groups) -> Consumer | None:
        """A consumer that is ready for more of a key it holds."""
        for consumer in self.consumers:
            if groups.first_of(consumer) >= 0 and consumer.ready():
                return consumer
        return None

    def get(self) -> tuple[Message, int, bool] | None:
        """Take the next message whose key is free; it is held until that is settled."""
        groups = self._groups
        if groups is None:
            return super().get()
        if self._unused is not None:
            self._unused.used()
        if self._local is not None:
            self._local.release_all()
        if self._expiring:
            self.expire()
        for _ in range(_SCAN_MOST):
            position = groups.first_free()
            message = self._take_one(groups, position)
            if message is not None:
                if self._overflow is not None:
                    self._left(self._overflow, message)
                self.unacked += 1
                if self._key is not None:
                    groups.hold(self._position, self._key, self)
                again = self._again
                if self._local is not None:
                    again = self._local.again(self._position, again)
                return message, self._position, again
            if position < 0 and not self._passed_over:
                break
        return None

    # --- messages that come back ----------------------------------------------------------------

    def settle(self, position: int) -> int:
        """A delivered message is done with, and its key may go on."""
        if self._groups is not None:
            self._groups.release(position)
        return ClassicQueue.settle(self, position)

    def reject(self, position: int) -> int:
        """A delivered message is refused; for good, unless it comes back, and its key may go on."""
        if self._groups is not None and (self._retry is None or not self._retry.takes(position)):
            self._groups.release(position)
        return ClassicQueue.reject(self, position)

    def pause(self, position: int) -> int:
        """A message waits before it is delivered again, and so does its key."""
        if self._groups is not None:
            self._groups.pause(position)
        return 0

    def hold(self, position: int) -> bool:
        """Leave a message out that was there before the restart, and hold its key."""
        groups = self._groups
        if groups is None:
            return ClassicQueue.hold(self, position)
        held = self._order.hold(position)
        message = self._read(position) if held else None
        key = None if message is None else self._key_of(message)
        if key is not None:
            groups.hold(position, key, self)
        self._ready = self._order.count + groups.count
        return held

    def purge(self) -> int:
        """Drop every message that is not out; keys that waited with theirs may go on."""
        count = ClassicQueue.purge(self)
        if self._groups is not None:
            self._groups.release_paused()
        return count

    def _put_back(self, position: int) -> int:
        groups = self._groups
        if groups is None:
            return ClassicQueue._put_back(self, position)  # noqa: SLF001  # what a queue without keys does
        key = groups.release(position)
        if key is None:
            message = self._read(position)
            key = self._key_of(message) if message is not None else None
        if key is None:
            self._order.put_back(position)
        else:
            groups.come_back(key, position)
        self._ready = self._order.count + groups.count
        return 0

    # --- browsers -------------------------------------------------------------------------------

    def _look(self, cursors: list[int]) -> int:
        found = ClassicQueue._look(self, cursors)  # noqa: SLF001  # what a queue without keys does
        if self._groups is not None:
            waiting = self._groups.after(cursors[0])
            if waiting >= 0 and (found < 0 or waiting < found):
                return waiting
        return found

    def _was_out(self, position: int) -> bool:
        if self._groups is not None and self._groups.waits(position):
            return self._groups.was_out(position)
        return ClassicQueue._was_out(self, position)  # noqa: SLF001  # what a queue without keys does

    def pour(self, first: int, end: int, into: BatchBuilder) -> int:
        """What is in its log; with keys a place in it does not say what was delivered."""
        if self._groups is None:
            return super().pour(first, end, into)
        log = self._order.log
        into.marks(0, 0, None, None, lambda position: self._was_out(position))
        return log.pour(first, min(end, self._order.end()), into)

    def _acquire(self, position: int, consumer: Consumer) -> bool:
        """Take a message for somebody who shall hold its key: not while others do."""
        groups = self._groups
        if groups is None:
            return self._take_out(position)
        if groups.waits(position):
            if not groups.may_go(position, consumer):
                return False
            key, self._again = groups.take(position)
        else:
            message = self._read(position)
            key = None if message is None else self._key_of(message)
            if (key is not None and key in groups) or not self._take_out(position):
                return False
        if key is not None:
            groups.hold(position, key, consumer)
        self._ready = self._order.count + groups.count
        return True

    # --- the oldest message, whatever its key ---------------------------------------------------

    def _take(self) -> Message | None:
        groups = self._groups
        if groups is not None:
            position = groups.oldest()
            while position >= 0:
                message = self._take_one(groups, position)
                if message is not None:
                    return message
                position = groups.oldest()
        return ClassicQueue._take(self)  # noqa: SLF001  # what a queue without keys does

    def _peek(self) -> Message | None:
        groups = self._groups
        if groups is not None:
            position = groups.oldest()
            while position >= 0:
                message = self._read(position)
                if message is not None:
                    return message
                groups.take(position)
                position = groups.oldest()
        return ClassicQueue._peek(self)  # noqa: SLF001  # what a queue without keys does

    def _drop_ready(self) -> int:
        if self._groups is not None:
            for position in self._groups.positions():
                self._groups.take(position)
                self._drop(position)
        return ClassicQueue._drop_ready(self)  # noqa: SLF001  # what a queue without keys does

    def _drop_all(self) -> int:
        if self._groups is not None:
            self._groups = Groups()
        return ClassicQueue._drop_all(self)  # noqa: SLF001  # what a queue without keys does

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
        """Refuse a consumer that does not say when it is done: no order could be kept."""
        if no_ack and self._groups is not None:
            thing = rendered("queue", self.name, self.vhost)
            raise precondition(
                f"automatic acknowledgement is not possible for {thing} with '{GROUP_KEY}'"
            )
        return super().check_consumer(
            tag, arguments, no_ack=no_ack, exclusive=exclusive, prefetch=prefetch
        )
