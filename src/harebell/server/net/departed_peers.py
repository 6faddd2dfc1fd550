"""Notice that a peer has left while nothing is read from it.

Reading would show the end of the input, and clients that wait for an owner are not read from. So
the state of the connection is looked at.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from harebell.server.limits import RELAY_LOOK_SECONDS

_ESTABLISHED = 1
"""TCP_ESTABLISHED of Linux; it is in the first byte of `struct tcp_info`."""


def has_left(sock: socket.socket) -> bool:
    """True if the peer has ended its connection; False where the platform does not say it."""
    option = getattr(socket, "TCP_INFO", None)
    if option is None or sock.family == socket.AF_UNIX:
        return False
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, option, 1)[0] != _ESTABLISHED
    except (OSError, ValueError):
        # uvloop: the socket of a connection that is closed here has the descriptor -1.
        return True


class DepartureWatch:
    """Looks for clients that have left, again and again while any wait.

    Args:
        loop: the event loop.
        look: looks at all who wait; True while there are any.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, look: Callable[[], bool]) -> None:
        self._loop = loop
        self._look = look
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Look soon, and go on while clients wait."""
        if self._timer is None:
            self._timer = self._loop.call_later(RELAY_LOOK_SECONDS, self._again)

    def end(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _again(self) -> None:
        # First: whatever `look` raises, it is called again.
        self._timer = self._loop.call_later(RELAY_LOOK_SECONDS, self._again)
        if not self._look():
            self.end()
