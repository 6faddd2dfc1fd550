"""A subscription of a session: its credit and its deliveries (AMQP 0-10, class message).

Credit is counted in messages and in bytes of header and body; if one of them is used up,
nothing more is sent. In window mode a delivery returns its credit when the peer has completed
it, whether it is accepted or not.

    message.flow      adds; without a value there is no limit until the next stop or flush
    message.stop      removes all             message.flush    delivers ready messages, removes all
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Done, i32, i64
from harebell.base.message import FAMILY_010, Message, Properties
from harebell.front.amqp_0_10.delivery import new_delivery
from harebell.front.common.interceptors import stamped_as_sent
from harebell.front.convert import converted
from harebell.kernels.transfers import SegmentBuffer
from harebell.model.consumer import Consumer
from harebell.model.queue.arguments import SELECTOR
from harebell.model.queue.contract import Queue
from harebell.model.queue.queue import MessageQueue
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.commands import MessageTransfer

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.session import Session

_FAMILY: i32 = FAMILY_010
_INFINITE: i64 = -1
_HEAD: i32 = 12
_FRAME: i32 = 65_535


class Subscription(Consumer):
    """Writes deliveries to its session.

    Args:
        session: the session that started it.
        queue: the queue that it consumes.
        tag: its destination.
        accept: whether the peer accepts, rejects or releases each message.
        acquire: whether deliveries are acquired; those of a browser are not.
        **options: as for `Consumer`.

    Attributes:
        messages, bytes: the remaining credit in messages and bytes; -1 is no limit.
        window: whether completion returns credit.
    """

    def __init__(
        self,
        session: Session,
        queue: Queue,
        tag: str,
        *,
        accept: bool,
        acquire: bool,
        **options: Any,
    ) -> None:
        super().__init__(queue, tag, **options)
        self._session = session
        self.accept = accept
        self.acquire = acquire
        self.messages: i64 = 0
        self.byte_count: i64 = 0
        self.window = True
        # A selector chooses among the messages, so the next one says nothing.
        chooses = SELECTOR in self.arguments
        self._peeks: bool = acquire and isinstance(queue, MessageQueue) and not chooses
        transfer = MessageTransfer(tag, int(not accept), int(not acquire))
        self._command: bytes = AMQP_0_10.encode(transfer)

    # --- credit ---------------------------------------------------------------------------------

    def ready(self) -> C[bool]:
        """True if there is credit, and space in the connection's output."""
        if self.messages == 0 or self.byte_count == 0 or not self._session.can_send():
            return False
        # Streams and browsers check the size at their own position, with `fits`.
        return self.byte_count < 0 or not self._peeks or self._next_fits()

    def fits(self, message: Message) -> C[bool]:
        """True if the credit in bytes is enough for a message."""
        return self.byte_count < 0 or self._size(message) <= self.byte_count

    def _next_fits(self) -> C[bool]:
        """True if the credit in bytes is enough for the first message of the queue.

        A message that is not in the queue yet is checked in the next turn.
        """
        message = self.queue.first()
        if message is None:
            self.again()
            return False
        return self.fits(message)

    def _size(self, message: Message) -> i64:
        """Return the bytes of header and body, as they are sent."""
        if message.family != _FAMILY:
            message = converted(message, _FAMILY)
        bare = Message(
            message.exchange,
            message.routing_key,
            Properties(message.raw, family=_FAMILY),
            b"",
        )
        # Both become headers of the delivery, so they count.
        bare.offset = message.offset
        bare.deliveries = message.deliveries
        scratch = SegmentBuffer()
        scratch.transfer(0, self._command, False, bare, _FRAME)
        # Without the frames of the command and of the empty body, only those of the header remain.
        written = len(scratch.take()) - len(self._command) - 2 * _HEAD
        frames = (written + _FRAME - 1) // _FRAME
        return written - frames * _HEAD + len(message.body)

    def add(self, unit: int, value: int | None) -> None:
        """Add credit; None is no limit."""
        if unit == 0:
            self.messages = _added(self.messages, value)
        else:
            self.byte_count = _added(self.byte_count, value)

    def restore_credit(self, byte_count: int) -> None:
        """Give back the credit of a delivery that the peer has completed."""
        if self.window:
            if self.messages >= 0:
                self.messages += 1
            if self.byte_count >= 0:
                self.byte_count += byte_count

    def stop(self) -> None:
        """Remove all credit."""
        self.messages = 0
        self.byte_count = 0

    # --- deliveries -----------------------------------------------------------------------------

    def deliver(self, message: Message, position: i64, redelivered: bool) -> Done:
        """Write message.transfer and store the unsettled delivery."""
        session = self._session
        if session.connection.stamps:
            message = stamped_as_sent(session.connection, message)
        if message.family != _FAMILY:
            message = converted(message, _FAMILY)
        byte_count: i64 = 0
        if self.byte_count > 0:
            byte_count = self._size(message)
            # Never below zero: that would mean no limit.
            self.byte_count = max(self.byte_count - byte_count, 0)
        number: i64 = session.deliver(self._command, redelivered, message)
        if self.messages > 0:
            self.messages -= 1
        # Without any limit there is no credit to give back, and nothing to remember.
        if self.window and (self.messages >= 0 or byte_count):
            session.windowed.put(number, (self, byte_count) if byte_count else self)
        if position >= 0:
            if self.accept:
                entry = new_delivery(self.queue, self, position, number, redelivered)
                if self.acquire:
                    self.unacked += 1
                    session.unacked.put(number, entry)
                else:
                    # message.acquire can still make it the session's own.
                    session.shown.put(number, entry)
            elif self.acquire:
                self.queue.settle(position)
        if session.router.tracer is not None:
            session.trace_delivery(message, self.queue.name, redelivered)
        return 0

    def again(self) -> Done:
        """Request another turn for subscriptions that were not fully served."""
        return self._session.connection.ask_for_turn()

    def queue_deleted(self) -> None:
        """End the session: the queue was deleted (AMQP 0-10: exception queue-deletion)."""
        self._session.queue_lost(self)


def _added(credit: int, value: int | None) -> int:
    return _INFINITE if credit < 0 or value is None else credit + value
