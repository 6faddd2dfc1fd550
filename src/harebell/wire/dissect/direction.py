"""One direction of a connection: bytes become events, until they cannot be understood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harebell.wire.dissect import event as kinds
from harebell.wire.dissect.event import Event


class Direction:
    """A decoder of frames, whose subclasses know the frames of a family.

    Args:
        version: of AMQP, for the events.
        from_client: the direction.

    Attributes:
        lost: whether the boundaries of frames are lost; nothing more is decoded then.
    """

    def __init__(self, version: str, from_client: bool) -> None:
        self.version = version
        self.from_client = from_client
        self.lost = False
        self._data = bytearray()
        self._skip = 0

    def feed(self, data: bytes) -> Iterator[Event]:
        """Decode bytes; return the events that they complete."""
        self._data += data
        while not self.lost and self._data:
            if self._skip:
                skipped = min(self._skip, len(self._data))
                del self._data[:skipped]
                self._skip -= skipped
                continue
            events = self._next()
            if events is None:
                return
            yield from events
        if self._data:
            yield self._made(kinds.UNREADABLE, None, bytes(self._data), text="not looked into")
            self._data.clear()

    def _next(self) -> Iterable[Event] | None:
        """Decode the next frame, whose first byte is there; None if more bytes are needed."""
        raise NotImplementedError

    def _lose(self, why: str) -> Event:
        """Stop decoding: the rest cannot be understood, and secrets in it cannot be located."""
        self.lost = True
        data = bytes(self._data)
        self._data.clear()
        return self._made(kinds.UNREADABLE, None, data, text=why)

    def _skipped(self, size: int, channel: int, text: str) -> Event:
        """Skip a frame that is too large to buffer, and count it."""
        self._skip = size
        return Event(
            kinds.BODY, self.from_client, size, channel=channel, version=self.version, text=text
        )

    def _made(self, kind: str, channel: int | None, frame: bytes, **more: Any) -> Event:
        return Event(
            kind, self.from_client, len(frame), channel=channel, version=self.version, **more
        )
