"""A delivery that comes in several transfers (AMQP 1.0 2.6.14 and 2.7.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_1_0.errors import INVALID_FIELD, LinkError
from harebell.front.common.unfinished_body import free
from harebell.kernels.bodies import GatheredBody

if TYPE_CHECKING:
    from harebell.base.gauge import Gauge
    from harebell.front.amqp_1_0.session import Session


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
        "_gathered",
        "_gauge",
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
        self._gathered = GatheredBody()

    @property
    def size(self) -> int:
        """The octets that have come."""
        size: int = self._gathered.size
        return size

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
        self._gathered.add(payload)
        self.counted += len(payload)
        self._gauge.add(len(payload))
        self._gauge.unread += len(payload)
        self._session.unfinished += len(payload)

    def take(self) -> bytes:
        """Return the octets of the whole message."""
        self._release()
        return self._gathered.take()

    def drop(self) -> None:
        """Drop what has come; the memory of a large message is freed in later turns."""
        self._release()
        free(self._gathered, self._session.connection.registry.work)

    def _release(self) -> None:
        self._gauge.take(self.counted)
        self._gauge.unread -= self.counted
        self._session.unfinished -= self.counted
        self.counted = 0
