"""Hand listening sockets on, so that clients find a listener at every moment.

A broker that stops to own its store begins anew as a standby, and a standby that becomes the owner
opens its listeners: the sockets stay the same. Clients that connect meanwhile wait in the backlog.

A variable of the environment names the sockets, in JSON, with their file descriptors:

    [["amqp", "::", 5672, [7, 8]], ...]    scheme, host and port as configured, descriptors
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.server.net.listen_address import ListenAddress

if TYPE_CHECKING:
    from harebell.cluster.postgresql.owned_store import OwnedStore
    from harebell.cluster.shared import Member

VARIABLE = "_HAREBELL_SOCKETS"
"""The variable that names the inherited sockets of a process that has begun anew."""


class EndedAsStandby(Exception):
    """SIGTERM or SIGINT ended the process before it served clients."""


class HandedSockets:
    """Listening sockets by their addresses, and clients that wait to be served.

    Args:
        listening: the sockets of each address.
        clients: the schemes and sockets of connections nothing of which was read.
    """

    def __init__(
        self,
        listening: Iterable[tuple[ListenAddress, list[socket.socket]]] = (),
        clients: Iterable[tuple[str, socket.socket]] = (),
    ) -> None:
        self._listening = list(listening)
        self._clients = list(clients)

    def take(self, address: ListenAddress) -> list[socket.socket] | None:
        """Return the sockets of an address, and forget them; None if there are none."""
        for index, (each, sockets) in enumerate(self._listening):
            if each == address:
                del self._listening[index]
                return sockets
        return None

    def take_clients(self, scheme: str) -> list[socket.socket]:
        """Return the clients of a scheme, and forget them."""
        clients = [sock for name, sock in self._clients if name == scheme]
        self._clients = [each for each in self._clients if each[0] != scheme]
        return clients

    def joined(self, other: HandedSockets) -> HandedSockets:
        """Return these and others together."""
        return HandedSockets(
            [*self._listening, *other._listening], [*self._clients, *other._clients]
        )

    @property
    def numbers(self) -> list[int]:
        """Return the file descriptors of the listening sockets."""
        return [each.fileno() for _, sockets in self._listening for each in sockets]

    def close(self) -> None:
        """Close what was not taken."""
        for _, sockets in self._listening:
            for each in sockets:
                each.close()
        for _, sock in self._clients:
            sock.close()
        self._listening, self._clients = [], []

    def bequeath(self, environ: MutableMapping[str, str]) -> None:
        """Let the program that replaces this one inherit the listening sockets.

        Args:
            environ: gets the variable that names them.
        """
        named: list[Any] = []
        for address, sockets in self._listening:
            for each in sockets:
                each.set_inheritable(True)
            named.append([*address, [each.fileno() for each in sockets]])
        environ[VARIABLE] = json.dumps(named)


def kept(listeners: Iterable[Any], http_listeners: Iterable[Any] = ()) -> HandedSockets:
    """Return copies of the sockets of listeners, which go on listening when those are closed.

    Args:
        listeners: each a `harebell.server.net.listener.Listener`.
        http_listeners: each a `harebell.management.http.listening.HttpListener`.
    """
    sockets = [
        (
            ListenAddress(each.scheme, each.configured_host, each.configured_port),
            _copies(each.server.sockets),
        )
        for each in listeners
    ]
    sockets += [(each.address, _copies(each.sockets)) for each in http_listeners]
    return HandedSockets(sockets)


def _copies(sockets: Iterable[Any]) -> list[socket.socket]:
    return [socket.socket(fileno=os.dup(each.fileno())) for each in sockets]


def inherited(environ: MutableMapping[str, str]) -> HandedSockets:
    """Return the sockets that the program before this one has left; none if it has left none."""
    listening = []
    for scheme, host, port, numbers in json.loads(environ.pop(VARIABLE, "[]")):
        sockets = [socket.socket(fileno=each) for each in numbers]
        for each in sockets:
            each.set_inheritable(False)
            each.setblocking(False)
        listening.append((ListenAddress(scheme, host, port), sockets))
    return HandedSockets(listening)


class Claimed(NamedTuple):
    """What a broker begins to serve clients with.

    Args:
        owned: the store in PostgreSQL; None for one in the data directory.
        handed: sockets that listen already.
        was_ended: returns whether SIGTERM or SIGINT has come since.
        worker: this process among those of a data directory; None if it is the only one.
    """

    owned: OwnedStore | None = None
    handed: HandedSockets = HandedSockets()
    was_ended: Callable[[], bool] = lambda: False
    worker: Member | None = None
