"""Accept sockets for TLS, so that connections are counted before the TLS handshake.

asyncio's TLS servers call the protocol only after the handshake: a peer that sends half a
ClientHello would not be counted, and its timeout would be a minute. So sockets are accepted here.
The connection is created first; then the event loop does the handshake.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress

from harebell.server.limits import ACCEPT_PAUSE_SECONDS, ACCEPTS_PER_TURN
from harebell.server.net.tcp_options import TcpOptions

ALL_ADDRESSES = "::"
IPV4_IN_IPV6 = "::ffff:"
"""Clients of IPv4 have addresses with this prefix at a listener on `::`."""
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


async def bound(
    loop: asyncio.AbstractEventLoop, host: str, port: int, options: TcpOptions | None = None
) -> list[socket.socket]:
    """Return sockets that listen on every address of a host.

    Raises:
        OSError: an address cannot be bound.
    """
    addresses = await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AddressInfo.AI_PASSIVE
    )
    options = options or TcpOptions()
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((each[0], each[4]) for each in addresses):
            # With its protocol: asyncio sets TCP_NODELAY on sockets that name it, and on no others.
            # Without it, output waits for up to 40 ms until the peer has acknowledged the last.
            made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            sockets.append(made)
            # A broker that starts again binds its port although old connections are in TIME_WAIT.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # As in RabbitMQ, `::` also serves clients of IPv4.
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != ALL_ADDRESSES)
            options.set_on(made)
            made.bind(address)
            made.listen(options.backlog)
            made.setblocking(False)
    except OSError as error:
        for each in sockets:
            each.close()
        if host == ALL_ADDRESSES and error.errno in _NO_IPV6:
            return await bound(loop, "0.0.0.0", port, options)  # noqa: S104  # asked for
        raise
    return sockets


class Acceptor:
    """Accepts sockets without reading from them.

    Args:
        loop: the event loop.
        sockets: listening sockets.
        accepted: called with every new socket.

    Attributes:
        sockets: the listening sockets.
        accepted: as given; a socket that was accepted elsewhere may be passed to it.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sockets: list[socket.socket],
        accepted: Callable[[socket.socket], None],
    ) -> None:
        self.sockets = sockets
        self._loop = loop
        self.accepted = accepted
        self._paused = False
        self._watch()

    def close(self) -> None:
        """Stop accepting, and close the listening sockets."""
        for each in self.sockets:
            if each.fileno() >= 0:
                self._loop.remove_reader(each.fileno())
                each.close()

    def pause(self, *, paused: bool) -> None:
        """Accept nothing, so that another process with the same sockets does; or go on."""
        if paused != self._paused:
            self._paused = paused
            self._watch()

    def detach(self) -> list[socket.socket]:
        """Stop accepting, and return the listening sockets; clients wait in their backlogs."""
        # Emptied first: a pause that ends later would watch the sockets again.
        sockets, self.sockets = self.sockets, []
        for each in sockets:
            self._loop.remove_reader(each.fileno())
        return sockets

    def _watch(self) -> None:
        for each in self.sockets:
            # A closed socket has -1: the timer after a shortage may come when the listener is
            # closed.
            if each.fileno() >= 0 and self._paused:
                self._loop.remove_reader(each.fileno())
            elif each.fileno() >= 0:
                self._loop.add_reader(each.fileno(), self._accept, each)

    def _accept(self, listening: socket.socket) -> None:
        # Not all that wait: a flood of new peers must not hold up the connections that are open.
        for _ in range(ACCEPTS_PER_TURN):
            try:
                sock, _address = listening.accept()
            except OSError as error:
                if error.errno in _SHORT:
                    # No file descriptors are left: peers wait in the listen backlog.
                    for each in self.sockets:
                        self._loop.remove_reader(each.fileno())
                    self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._watch)
                return
            sock.setblocking(False)
            self.accepted(sock)


def cut(sock: socket.socket) -> None:
    """Shut down a socket during its TLS handshake; the event loop then closes it."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
