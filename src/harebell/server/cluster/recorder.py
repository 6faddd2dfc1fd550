"""Keep what a client sends until it is known which broker serves it.

A recorder stands between the socket and the `ServerProtocol` of a connection, and steps aside when
the connection is open or refused: a connection that is open has nothing of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from harebell.base.limits import HAND_OVER_BYTES

if TYPE_CHECKING:
    from harebell.server.net.elsewhere import RecordedProtocol


class Recorder(asyncio.BufferedProtocol):
    """Copies the input of a connection that is not open yet.

    Args:
        protocol: gets all events of the socket.
    """

    def __init__(self, protocol: RecordedProtocol) -> None:
        self._protocol = protocol
        self._parts: list[bytes] = []
        self._size = 0
        self._buffer = memoryview(b"")

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that the protocol reads into."""
        self._buffer = self._protocol.get_buffer(sizehint)
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Copy what was read, and pass it to the protocol."""
        protocol = self._protocol
        if self._wanted():
            self._size += nbytes
            if self._size > HAND_OVER_BYTES:
                protocol.refuse(f"more than {HAND_OVER_BYTES} bytes before connection.open")
                return
            self._parts.append(bytes(self._buffer[:nbytes]))
        protocol.buffer_updated(nbytes)
        self._wanted()

    def eof_received(self) -> bool:
        """Pass the end of the input to the protocol."""
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the end of the connection to the protocol."""
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it to the protocol."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Pass it to the protocol."""
        self._protocol.resume_writing()

    def take(self) -> bytes:
        """Return what the client has sent, and forget it."""
        sent = b"".join(self._parts)
        self._parts = []
        return sent

    def _wanted(self) -> bool:
        """Return whether input has to be kept; otherwise step aside."""
        protocol = self._protocol
        connection, transport = protocol.connection, protocol.transport
        if connection is None or transport is None or connection.may_be_handed_over:
            return True
        self._parts = []
        protocol.recorder = None
        transport.set_protocol(cast(asyncio.BaseProtocol, protocol))
        return False
