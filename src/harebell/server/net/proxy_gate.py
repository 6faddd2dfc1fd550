"""Accept connections of a load balancer, which begin with a PROXY header (`proxy_protocol`).

The header is read before the connection is created, because the connection has the address of the
client: it is shown, logged, limited, and compared with `loopback_users`. Until then a socket is
counted here.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from harebell.server.background_tasks import BackgroundTasks
from harebell.server.net.proxy_header import ProxyHeaderError, read_proxy_header

Addresses = tuple[tuple[Any, ...], tuple[Any, ...]]
"""The addresses of the client, and that it has connected to."""


class ProxyGate:
    """Reads the headers of one listener.

    Args:
        loop: the event loop.
        seconds: time that a header may take.
        has_room: returns whether one more socket may wait for its header beside so many.
        serve: serves a socket whose header was read.
        log: takes a level, a line and a category.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
        has_room: Callable[[int], bool],
        serve: Callable[[socket.socket, Addresses], Awaitable[None]],
        log: Callable[[str, str, str], None],
    ) -> None:
        self._loop = loop
        self._seconds = seconds
        self._has_room = has_room
        self._serve = serve
        self._log = log
        self._reading = BackgroundTasks()

    def accepted(self, sock: socket.socket) -> None:
        """Begin with a new socket, or close it if too many wait for their headers."""
        if not self._has_room(len(self._reading)):
            sock.close()
            return
        self._reading.start(self._read(sock))

    async def _read(self, sock: socket.socket) -> None:
        try:
            real = sock.getpeername(), sock.getsockname()
            async with asyncio.timeout(self._seconds):
                proxy_header = await read_proxy_header(self._loop, sock)
            await self._serve(sock, proxy_header or real)
        except ProxyHeaderError as error:
            self._refuse(sock, real[0], str(error))
        except TimeoutError:
            self._refuse(sock, real[0], "it is not there in time")
        except OSError:
            # The peer has gone.
            sock.close()
        # The broker stops: until its header is read a socket has no other owner.
        except asyncio.CancelledError:
            sock.close()
            raise

    def _refuse(self, sock: socket.socket, address: tuple[str, int], why: str) -> None:
        self._log(
            "warning",
            f"{address[0]}:{address[1]}: error when receiving the PROXY header: {why}",
            "connection",
        )
        sock.close()
