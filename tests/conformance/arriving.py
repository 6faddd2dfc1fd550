"""What the raw peers of 0-10 and 1.0 share: they send any octets, and take what comes in order."""

from __future__ import annotations

import time
from itertools import count
from typing import Any, Generic, Protocol, Self, TypeVar

from tests.conformance.sites import Site, Wire

WAIT_SECONDS = 60.0

_names = count()


def unique(name: str) -> str:
    """A name that no other test has: the broker may be shared."""
    return f"{name}-{next(_names)}"


class Arrival(Protocol):
    """What came on a channel."""

    @property
    def channel(self) -> int: ...
    @property
    def value(self) -> Any: ...


A = TypeVar("A", bound=Arrival)


class ArrivingPeer(Generic[A]):
    """One connection to the broker under test.

    Attributes:
        data: octets that came and are not yet a whole frame.
        ended: whether the broker has ended the connection.
    """

    def __init__(self, site: Site, wire: Wire) -> None:
        self.site = site
        self.wire = wire
        self.data = bytearray()
        self.ended = False
        self.opened = False
        self._queue: list[A] = []

    def send_bytes(self, *pieces: bytes) -> Self:
        """Any octets, in one write."""
        self.wire.write(b"".join(pieces))
        return self

    def next(self, what: str = "anything", seconds: float = WAIT_SECONDS) -> A:
        """The next thing, which has to come."""
        found = self.maybe(seconds)
        if found is None:
            ended = "the broker ended the connection" if self.ended else f"{seconds} s passed"
            raise AssertionError(f"{ended} while waiting for {what}")
        return found

    def maybe(self, seconds: float = 0.0) -> A | None:
        """The next thing, if one comes."""
        until = time.monotonic() + seconds
        while True:
            self._read_frames()
            if self._queue:
                return self._queue.pop(0)
            if self.ended or not self._more(until):
                return None

    def _more(self, until: float) -> bool:
        data = self.wire.read(max(0.0, until - time.monotonic()))
        if data is None:
            self.ended = True
        elif data:
            self.data += data
        elif time.monotonic() >= until or hasattr(self.site, "turn"):
            return False
        return True

    def _read_frames(self) -> None:
        """Move the whole frames of `data` to `_queue`."""
        raise NotImplementedError

    def _expect(self, kind: type[Any], channel: int, fields: dict[str, Any]) -> A:
        found = self.next(kind.NAME)
        assert isinstance(found.value, kind), f"expected {kind.NAME}, got {found}"
        assert found.channel == channel, f"expected channel {channel}, got {found}"
        for name, value in fields.items():
            assert getattr(found.value, name) == value, f"{name}: expected {value!r}, got {found}"
        return found

    def expect_header(self, header: bytes) -> None:
        """A protocol header."""
        until = time.monotonic() + WAIT_SECONDS
        while len(self.data) < len(header) and not self.ended and self._more(until):
            pass
        found = bytes(self.data[: len(header)])
        assert found == header, found
        del self.data[: len(header)]

    def expect_end(self) -> None:
        """Nothing more, and the broker ends the connection."""
        found = self.maybe(WAIT_SECONDS)
        assert found is None, found
        assert self.ended, "the broker did not end the connection"
