"""Let sockets that several processes listen at refuse clients, and accept them again.

A process that closes its copy of a listening socket leaves it open for the others, and for their
supervisor: clients would wait in its backlog. So the socket itself stops to listen. Its port stays
bound, and all copies listen again when one of them does.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import suppress


def silence(sockets: Iterable[socket.socket]) -> None:
    """Refuse clients from now on, those that wait included."""
    for each in sockets:
        # A second shutdown would be inherited by the connections that it accepts later.
        if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            _end(each)


def _end(listening: socket.socket) -> None:
    with suppress(OSError):
        listening.shutdown(socket.SHUT_RD)
    # Linux gives a port back that it has chosen itself; for any other one this is an error.
    with suppress(OSError):
        listening.bind(listening.getsockname())


def listen_again(sockets: Iterable[socket.socket], backlog: int) -> None:
    """Accept clients again; if one socket cannot, none does.

    Args:
        sockets: those that were silenced.
        backlog: how many clients may wait.

    Raises:
        OSError: another program listens there now.
    """
    listening = []
    try:
        for each in sockets:
            each.listen(backlog)
            listening.append(each)
            # Two processes may have silenced it at the same time: this forgets both.
            _end(each)
            each.listen(backlog)
    except OSError:
        silence(listening)
        raise
