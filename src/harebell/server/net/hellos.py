"""Begin TLS handshakes a few at a time.

A handshake takes a signature of about a millisecond as soon as the ClientHello is whole, and a
thousand peers can complete theirs at the same moment. So a socket waits here until its first record
is whole, unread in its buffer, and then for its turn; the addresses take turns.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque

from harebell.server.limits import TLS_HELLOS_PER_TURN

_HANDSHAKE = 22
"""The type of a record of the handshake."""
_HEAD_BYTES = 5
"""Type, version and length of a record (RFC 8446, 5.1)."""
_RECORD_BYTES = 16_384


class Hellos:
    """The sockets whose handshake is about to begin."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._running = False

    async def turn(self, sock: socket.socket, address: str) -> None:
        """Wait until the handshake of a socket may begin.

        Args:
            sock: what was accepted; nothing is read from it.
            address: of the peer.
        """
        await _first_record(sock)
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        self._waiting.setdefault(address, deque()).append(mine)
        if not self._running:
            self._running = True
            loop.call_soon(self._next)
        await mine

    def _next(self) -> None:
        """Let the next ones begin."""
        left = TLS_HELLOS_PER_TURN
        while self._waiting and left:
            address, futures = next(iter(self._waiting.items()))
            del self._waiting[address]
            future = futures.popleft()
            if futures:
                # To the end: the addresses take turns.
                self._waiting[address] = futures
            if not future.done():
                future.set_result(None)
                left -= 1
        self._running = bool(self._waiting)
        if self._running:
            asyncio.get_running_loop().call_soon(self._next)


async def _first_record(sock: socket.socket) -> None:
    """Wait until a socket can read a whole record of TLS, bytes that are none, or the end."""
    needed = 1
    try:
        while True:
            await _readable(sock)
            try:
                data = sock.recv(_HEAD_BYTES + _RECORD_BYTES, socket.MSG_PEEK)
            except BlockingIOError:
                continue
            except OSError:
                return  # the handshake fails with it
            if len(data) < needed or data[0] != _HANDSHAKE:
                return  # it ends here, or is no TLS
            whole = _HEAD_BYTES
            if len(data) >= _HEAD_BYTES:
                whole += min(int.from_bytes(data[3:_HEAD_BYTES]), _RECORD_BYTES)
            if len(data) >= whole > _HEAD_BYTES:
                return
            if whole == needed:
                return
            # Without a low-water mark the part that has arrived makes the socket readable, so that
            # the loop would spin until the rest comes.
            needed = whole
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, needed)
    finally:
        if needed > 1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


async def _readable(sock: socket.socket) -> None:
    """Wait until a socket has something to read, or has ended."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()

    def report() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(sock.fileno(), report)
    try:
        await readable
    finally:
        loop.remove_reader(sock.fileno())
