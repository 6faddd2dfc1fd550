"""One of two connections whose octets are passed on to each other, with back-pressure.

    peer --- near --- far --- peer

TLS cannot end one direction alone, so its end is the end of both. A peer without TLS behind it
gets the rest and then the end, and is read until it closes by itself, for RELAY_END_SECONDS: a
socket that is closed with unread input is reset, and the peer could lose the last octets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from harebell.server.limits import RELAY_BUFFER_BYTES, RELAY_END_SECONDS, RELAY_ENDED_SECONDS


class RelaySide(asyncio.Protocol):
    """One of the two connections of a pair: what arrives here is written there.

    Args:
        loop: the event loop.
        lost: called when the connection is lost; None for nothing.

    Attributes:
        transport: the connection; None before it is there.
        other: the other side.
        ended: whether the peer sends no more.
        full: whether the peer reads slowly, so that nothing may be written now.
        serves: whether the peer is the owner, which has nothing more for the client when it ends.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, lost: Callable[[RelaySide], None] | None = None
    ) -> None:
        self._loop = loop
        self._lost = lost
        self._dropping = False
        self.ended = False
        self.full = False
        self.serves = False
        self.transport: Any = None
        self.other: RelaySide

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read nothing until both connections are there."""
        self.transport = transport
        self.transport.pause_reading()
        self.transport.set_write_buffer_limits(high=RELAY_BUFFER_BYTES)

    def begin(self) -> None:
        """Pass on from here: both connections are there."""
        if not self.other.full:
            with suppress(RuntimeError):  # it is closed
                self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Pass octets on."""
        other = self.other.transport
        # It may have been cut in this turn of the loop: uvloop refuses to write then.
        if not self._dropping and not other.is_closing():
            other.write(data)

    def eof_received(self) -> bool:
        """Pass on that no more octets come; True: the other direction goes on."""
        self.ended = True
        other = self.other.transport
        if other is None or self.other.ended or not self.transport.can_write_eof():
            return False
        if other.can_write_eof():
            other.write_eof()
            if self.serves:
                # Else a client that never closes its connection would keep both for ever.
                self._loop.call_later(RELAY_END_SECONDS, other.abort)
        else:
            # What it has been sent is answered first.
            self._loop.call_later(RELAY_ENDED_SECONDS, other.close)
        return True

    def pause_writing(self) -> None:
        """The peer reads slowly: read no more from the other one."""
        self.full = True
        with suppress(RuntimeError):  # it is closed
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """The peer has read: go on."""
        self.full = False
        with suppress(RuntimeError):  # it is closed
            self.other.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """Write the rest to the other peer, and close its connection too."""
        if self._lost is not None:
            self._lost(self)
        other = self.other.transport
        if other is None or other.is_closing():
            return
        if error is None and self.ended and not self.other.ended and other.can_write_eof():
            self.other.linger()
        else:
            other.close()
        self._loop.call_later(RELAY_END_SECONDS, other.abort)

    def linger(self) -> None:
        """Write the rest and the end, and drop what the peer still sends."""
        self._dropping = True
        self.transport.write_eof()
        with suppress(RuntimeError):  # it is closed
            self.transport.resume_reading()


def pair(near: RelaySide, far: RelaySide) -> None:
    """Make two sides the two of a pair, before they have connections."""
    near.other, far.other = far, near
    far.serves = True
