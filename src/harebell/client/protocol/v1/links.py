"""The links of a session: what goes over each of them, and the credit for it.

attach -->               our handle, name, role, source and target
<-- attach               the broker's handle, the termini that it grants; none if it refuses
<-- detach               the reason of the refusal, or of the end
detach -->
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from harebell.base.errors import ProtocolError
from harebell.base.limits import BODY_HARD_MAX_BYTES
from harebell.base.message import Properties
from harebell.client.errors import AMQPError
from harebell.client.protocol.call import Call
from harebell.kernels.performatives import ABORTED, MORE, SETTLED
from harebell.wire.v1.composites import Attach
from harebell.wire.v1.sections import split

OnMessage = Callable[["ReceiverLink", int, bool, Properties, bytes], None]
NUMBERS = 1 << 32
HALF = 1 << 31


class Outgoing:
    """A message on its way to the broker.

    Args:
        payload: its encoded sections.
        settled: whether no outcome is expected.
        state: the encoded state of its delivery, which names its transaction; b"" for none.

    Attributes:
        number: its delivery-id; -1 before its first frame.
        offset: how many octets of it were sent.
    """

    __slots__ = ("number", "offset", "payload", "settled", "state")

    def __init__(self, payload: bytes, *, settled: bool = False, state: bytes = b"") -> None:
        self.payload = payload
        self.settled = settled
        self.state = state
        self.number = -1
        self.offset = 0


class LinkEnd:
    """One end of a link.

    Args:
        name: its name, unique in the session.
        handle: our handle.
        on_lost: called with the reason when the broker ends it, after it was attached.

    Attributes:
        opening: settled when the broker has answered the attach.
        closing: settled when it has answered the detach.
        answer: the broker's attach; None before.
        detaching: whether our detach was sent.
        closed: whether nothing more goes over it.
    """

    is_receiver = False

    def __init__(self, name: str, handle: int, on_lost: Callable[[AMQPError], None]) -> None:
        self.name = name
        self.handle = handle
        self.opening: Call[Any] = Call()
        self.closing: Call[None] = Call()
        self.answer: Attach | None = None
        self.detaching = False
        self.closed = False
        self.delivery_count = 0
        self.credit = 0
        self._on_lost = on_lost

    @property
    def attached(self) -> bool:
        """Whether messages may go over it."""
        return self.opening.done and not self.detaching and not self.closed

    def granted(self, attach: Attach) -> bool:
        """Handle the broker's attach; True if it grants the link, and else a detach follows."""
        self.answer = attach
        if (attach.source if self.is_receiver else attach.target) is None:
            return False
        self.opening.succeed(self)
        return True

    def end(self, error: AMQPError) -> None:
        """End: the broker, or the session, has ended it."""
        if self.closed:
            return
        self.closed = True
        wanted = self.opening.done and self.opening.error is None and not self.detaching
        self.opening.fail(error)
        self.closing.succeed(None)
        if wanted:
            self._on_lost(error)


class SenderLink(LinkEnd):
    """A link to the broker.

    Args:
        name, handle, on_lost: as of `LinkEnd`.
        on_outcome: called once for each message that is not settled, with its outcome: None if the
            broker settled it without one, an `AMQPError` if the link ended before.

    Attributes:
        pending: messages that wait for credit.
    """

    def __init__(
        self,
        name: str,
        handle: int,
        on_lost: Callable[[AMQPError], None],
        on_outcome: Callable[[Any, Any], None],
    ) -> None:
        super().__init__(name, handle, on_lost)
        self.pending: deque[Outgoing] = deque()
        self.on_outcome = on_outcome

    def credited(self, delivery_count: int | None, credit: int) -> None:
        """Take over the credit of a flow."""
        given = ((delivery_count or 0) + credit - self.delivery_count) % NUMBERS
        self.credit = given if given < HALF else 0

    def drain(self) -> None:
        """Use up the credit: there is nothing to send."""
        self.delivery_count = (self.delivery_count + self.credit) % NUMBERS
        self.credit = 0

    def end(self, error: AMQPError) -> None:
        """End; what waits has no outcome any more."""
        super().end(error)
        pending, self.pending = self.pending, deque()
        for message in pending:
            # One whose first frames were sent is among the deliveries of the session.
            if not message.settled and message.number < 0:
                self.on_outcome(message, error)


class _Incoming:
    """A message from the broker that is not complete."""

    __slots__ = ("number", "parts", "settled", "size")

    def __init__(self, number: int) -> None:
        self.number = number
        self.settled = False
        self.parts: list[bytes] = []
        self.size = 0


class ReceiverLink(LinkEnd):
    """A link from the broker.

    Args:
        name, handle, on_lost: as of `LinkEnd`.
        on_message: called with the link, the delivery-id, whether it is settled, the sections
            before the body, and the body.
        window: how many messages may be in flight or not settled at a time.
        counts: whether unsettled messages take places of the window.

    Attributes:
        unsettled: number of deliveries without our outcome.
        drained: called when the broker has used up the credit of a drain.
    """

    is_receiver = True

    def __init__(
        self,
        name: str,
        handle: int,
        on_lost: Callable[[AMQPError], None],
        on_message: OnMessage,
        *,
        window: int = 0,
        counts: bool = False,
    ) -> None:
        super().__init__(name, handle, on_lost)
        self.on_message = on_message
        self.drained: Callable[[], None] | None = None
        self.unsettled = 0
        self.window = window
        self.counts = counts
        self._partial: _Incoming | None = None

    def granted(self, attach: Attach) -> bool:
        """Take over the delivery-count of the broker; see `LinkEnd.granted`."""
        self.delivery_count = attach.initial_delivery_count or 0
        return super().granted(attach)

    def due(self) -> int:
        """Return the credit to grant now; -1 while the present one suffices."""
        target = self.window - self.unsettled if self.counts else self.window
        return target if target - self.credit >= max(1, self.window // 2) else -1

    @property
    def assembles(self) -> int:
        """Number of messages that are not complete: 0 or 1."""
        return self._partial is not None

    def delivered(self, number: int, settled: bool, properties: Properties, body: bytes) -> None:
        """Handle a whole message.

        Raises:
            ProtocolError: it has no delivery-id.
        """
        if number < 0:
            raise ProtocolError(501, "the first transfer of a delivery has no delivery-id")
        self._count()
        self.on_message(self, number, settled, properties, body)

    def _count(self) -> None:
        self.delivery_count = (self.delivery_count + 1) % NUMBERS
        self.credit = max(0, self.credit - 1)

    def part(self, number: int, flags: int, payload: bytes) -> None:
        """Handle a part of a message.

        Args:
            number: its delivery-id; -1 if it is not given.
            flags: SETTLED, MORE, ABORTED.
            payload: the part of its sections.

        Raises:
            ProtocolError: the first one has no delivery-id, or the message is too large.
            DecodeError: the whole is no message.
        """
        message = self._partial
        if message is None:
            if number < 0:
                raise ProtocolError(501, "the first transfer of a delivery has no delivery-id")
            message = self._partial = _Incoming(number)
        message.settled = message.settled or bool(flags & SETTLED)
        message.size += len(payload)
        if message.size > BODY_HARD_MAX_BYTES:
            raise ProtocolError(501, f"a message of more than {BODY_HARD_MAX_BYTES} octets came")
        message.parts.append(payload)
        if flags & ABORTED:
            self._partial = None
            self._count()
        elif not flags & MORE:
            self._partial = None
            raw, body, family = split(b"".join(message.parts))
            properties = Properties(raw, family=family)
            self.delivered(message.number, message.settled, properties, body)
