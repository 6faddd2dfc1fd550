"""A delivery whose transfers go to its session one by one: they may have to wait for its window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.wire.v1.composites import Transfer
from harebell.wire.v1.frames import HEAD, encode_frame

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.session import Session

_SERIALS = 1 << 32


class Parts:
    """The rest of a delivery. Its frames are made when they are sent: there may be very many.

    Args:
        transfer: the first one.
        payload: the sections of the message.
        channel: of the session.
        room: most octets of a frame.

    Attributes:
        handle: of the link.
        left: octets of the payload that are not sent yet.
        done: whether everything is sent.
    """

    __slots__ = ("_channel", "_head", "_payload", "_room", "done", "handle", "left")

    def __init__(self, transfer: Transfer, payload: bytes, channel: int, room: int) -> None:
        self.handle = transfer.handle
        self.left = len(payload)
        self.done = False
        self._payload = payload
        self._channel = channel
        self._room = room - HEAD
        self._head = transfer.encoded()
        if self._size() < self.left:
            transfer.more = True
            self._head = transfer.encoded()

    def _size(self) -> int:
        return self._room - len(self._head)

    def next_frame(self) -> bytes:
        """Return the next frame."""
        at, size = len(self._payload) - self.left, self._size()
        frame = encode_frame(self._head + self._payload[at : at + size], self._channel)
        self.left = max(self.left - size, 0)
        self.done = self.left == 0
        if not self.done:
            self._head = Transfer(handle=self.handle, more=True).encoded()
            if self._size() >= self.left:
                self._head = Transfer(handle=self.handle).encoded()
        return frame


def send_in_parts(
    session: Session,
    handle: int,
    number: int,
    tag: bytes,
    payload: bytes,
    *,
    settled: bool,
    **fields: Any,
) -> None:
    """Give the transfers of a delivery to its session, which sends as many as it may.

    Args:
        session: of the link.
        handle: of the link.
        number: the delivery-id.
        tag: the delivery-tag.
        payload: the sections of the message.
        settled: whether the peer need not settle it.
        **fields: further ones of its first transfer.
    """
    transfer = Transfer(
        handle=handle,
        delivery_id=number % _SERIALS,
        delivery_tag=tag,
        message_format=0,
        settled=settled,
        **fields,
    )
    session.send_parts(Parts(transfer, payload, session.number, session.connection.frame_max))
