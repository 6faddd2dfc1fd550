"""A delivery that comes in several transfers (AMQP 1.0 2.6.14 and 2.7.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.errors import DecodeError
from harebell.front.amqp_1_0.errors import INVALID_FIELD, LinkError
from harebell.front.common.unfinished_body import free
from harebell.kernels.bodies import GatheredBody
from harebell.kernels.sections import section

if TYPE_CHECKING:
    from harebell.base.gauge import Gauge
    from harebell.front.amqp_1_0.session import Session

_DATA = b"\0\x53\x75"
_EMPTY_DATA = _DATA + b"\xa0\0"
_DATA_HEAD_BYTES = 8
_SHORT = 255


class PartialDelivery:
    """A delivery that is being received.

    Args:
        session: of its link.
        number: its delivery-id.
        tag: its delivery-tag.
        message_format: of its message.
        state: the encoded state of its first transfer; b"" without one.

    Attributes:
        settled: whether one of its transfers says so.
        resumed: whether it was sent before its link was resumed.
    """

    __slots__ = (
        "_content_bytes",
        "_gathered",
        "_gauge",
        "_head",
        "_session",
        "counted",
        "message_format",
        "number",
        "resumed",
        "settled",
        "state",
        "tag",
    )

    def __init__(
        self, session: Session, number: int, tag: bytes, message_format: int, state: bytes
    ) -> None:
        self.number = number
        self.tag = tag
        self.message_format = message_format
        self.state = state
        self.settled = False
        self.resumed = False
        self.counted = 0
        self._session = session
        self._gauge: Gauge = session.connection.registry.gauge
        # What is before the content of the first data section, if that is gathered apart: cutting
        # a large body out of the whole message at its end would copy it in one turn.
        self._head = b""
        self._content_bytes = 0
        self._gathered: GatheredBody | None = None

    @property
    def size(self) -> int:
        """The bytes that have come."""
        gathered: int = 0 if self._gathered is None else self._gathered.size
        return len(self._head) + gathered

    def check(self, number: int, tag: bytes | None, message_format: int) -> None:
        """Refuse a transfer that says otherwise than the first one (AMQP 1.0 2.7.5).

        Args:
            number: its delivery-id; -1 if it was left out.
            tag: its delivery-tag; None if it was left out.
            message_format: -1 if it was left out.

        Raises:
            LinkError: invalid-field.
        """
        if number not in (-1, self.number):
            text = f"delivery-id ({number}) of a transfer is not its delivery's ({self.number})"
            raise LinkError(INVALID_FIELD, text)
        if tag is not None and tag != self.tag:
            text = "delivery-tag of a transfer is not that of its delivery"
            raise LinkError(INVALID_FIELD, text)
        if message_format not in (-1, self.message_format):
            text = "message-format of a transfer is not that of its delivery"
            raise LinkError(INVALID_FIELD, text)

    def add(self, payload: bytes) -> None:
        """Add the payload of a transfer."""
        size = len(payload)
        if self._gathered is None:
            self._head, self._content_bytes = _begun(payload)
            self._gathered = GatheredBody(self._content_bytes)
            payload = payload[len(self._head) :]
        self._gathered.add(payload)
        self.counted += size
        self._gauge.add(size)
        self._gauge.unread += size
        self._session.unfinished += size

    def take(self) -> tuple[bytes, bytes | None]:
        """Return the whole message, or a message with an empty data section and its content."""
        self._release()
        assert self._gathered is not None, "a delivery has at least one transfer"
        size, gathered = self._gathered.size, self._gathered.take()
        if self._head and size == self._content_bytes:
            return self._head[:-_DATA_HEAD_BYTES] + _EMPTY_DATA, gathered
        return self._head + gathered, None

    def drop(self) -> None:
        """Drop what has come; the memory of a large message is freed in later turns."""
        self._release()
        if self._gathered is not None:
            free(self._gathered, self._session.connection.registry.work)

    def _release(self) -> None:
        self._gauge.take(self.counted)
        self._gauge.unread -= self.counted
        self._session.unfinished -= self.counted
        self.counted = 0


def _begun(payload: bytes) -> tuple[bytes, int]:
    """Return what is before the content of a data section that goes on, and the content's size.

    If the first transfer has no such section, encoded as short as can be, these are b"" and 0.
    """
    at, end = 0, len(payload)
    try:
        while at < end and payload[at : at + len(_DATA)] != _DATA:
            _, _, at = section(payload, at, end)
    except DecodeError:
        return b"", 0
    start = at + _DATA_HEAD_BYTES
    size = int.from_bytes(payload[at + 4 : start])
    if payload[at + 3 : at + 4] == b"\xb0" and start <= end < start + size and size > _SHORT:
        return payload[:start], size
    return b"", 0
