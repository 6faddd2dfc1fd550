"""Pass the connections of clients on to the owner of a store, byte for byte.

    client ---> standby's port ---> the owner's port of the same scheme

Nothing is read from a client before its connection to the owner is there. So a client that comes
while there is no owner waits, and is served by this broker itself if that becomes the owner.

**No circles.** A standby passes on to the owner of the epoch that it has seen, and never to itself.
When a broker that a connection is passed on to is a standby again, it has seen that its own epoch
is over, so it passes on to the owner of a later one: epochs grow along every chain. In a cluster of
several stores the port of an owner is that of other processes too; those that stand by do not
accept clients there (`leave_to_others`), or a connection could go back and forth.

**Loopback stays loopback.** Users may be restricted to loopback. A client of another machine must
not look like one of this machine because the owner happens to run here too, so its connection to
the owner then begins at the address that the client has connected to.

**Before a login.** A client that waits for an owner has not logged in, so it counts as one of those
at a broker that serves, in total and per address. After that the owner counts it, and closes it if
its handshake takes too long.
"""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from harebell.cluster.forwarder import Client, Forwarder, NotReached
from harebell.cluster.limits import RELAY_CONNECT_SECONDS
from harebell.front.common.pending_logins import PendingLogins
from harebell.server.net.acceptor import Acceptor
from harebell.server.net.handed_sockets import HandedSockets
from harebell.server.net.listen_address import ListenAddress
from harebell.server.net.relay_side import RelaySide


class Owner(NamedTuple):
    """The broker that connections are passed on to.

    Args:
        epoch: of its claim.
        addresses: where it accepts AMQP, "host:port" by scheme.
    """

    epoch: int
    addresses: dict[str, str]


class Relay(Forwarder):
    """Accepts the connections of clients of a standby.

    Args:
        seconds: how long a connection may wait for an owner.
        limit: how many connections there may be.
        report: called with a level and a line.

    Attributes:
        pending_logins: those that wait for an owner; it has limits of them.
    """

    def __init__(self, seconds: float, limit: int, report: Callable[[str, str], None]) -> None:
        super().__init__("the owner", seconds, limit, report)
        self.pending_logins = PendingLogins()
        self._numbers = itertools.count(1)
        self._left_to_others = False
        self._last_reason = ""
        self._acceptors: list[tuple[ListenAddress, Acceptor]] = []
        self._owner: Owner | None = None
        self._has_owner = asyncio.Event()

    @property
    def addresses(self) -> list[tuple[str, str, int]]:
        """Return the scheme, the address and the port of everything that listens."""
        addresses = []
        for asked, acceptor in self._acceptors:
            host, port = acceptor.sockets[0].getsockname()[:2]
            addresses.append((asked.scheme, host, port))
        return addresses

    def listen(self, asked: ListenAddress, sockets: list[socket.socket]) -> None:
        """Accept connections from listening sockets."""
        acceptor = Acceptor(self._loop, sockets, lambda new: self._accepted(asked.scheme, new))
        acceptor.pause(paused=self._left_to_others)
        self._acceptors.append((asked, acceptor))

    def leave_to_others(self, *, others: bool) -> None:
        """Accept no clients while other processes of this machine do, which own a store."""
        self._left_to_others = others
        for _, acceptor in self._acceptors:
            acceptor.pause(paused=others)

    def pass_on_to(self, owner: Owner | None) -> None:
        """Pass on to this broker from now on; connections to an earlier owner are cut."""
        if owner == self._owner:
            return
        self._owner = owner
        if owner is None:
            # Connections stay: the owner may serve on until its lease is over.
            self._has_owner.clear()
            return
        self._has_owner.set()
        self.cut(lambda epoch: epoch != owner.epoch)

    def close(self) -> HandedSockets:
        """Cut what is passed on, and return the listening sockets and the clients that wait."""
        listening = [(asked, acceptor.detach()) for asked, acceptor in self._acceptors]
        self._acceptors = []
        return HandedSockets(listening, [(each.scheme, each.sock) for each in self.end()])

    def _accepted(self, scheme: str, client: socket.socket) -> None:
        address = _address(client)
        if (
            not self.has_room()
            or address is None
            or not self.pending_logins.admits(address, self._report)
        ):
            client.close()
            return
        number = next(self._numbers)
        self.pending_logins.add(number, address)
        reach, failed = partial(self._connect, scheme, client), partial(self._failed, scheme)
        task = self.forward(Client(client, reach, failed, scheme))
        task.add_done_callback(lambda _: self.pending_logins.remove(number))

    def _failed(self, scheme: str, _reason: str) -> None:
        """Say once why clients are closed that have waited for too long."""
        owner = self._owner
        if owner is None:
            reason = "no broker owns the store"
        elif scheme not in owner.addresses:
            reason = f"the owner of the store has no port for {scheme}: give all the same ports"
        else:
            reason = (
                f"the owner of the store does not answer at {owner.addresses[scheme]}; set its "
                "storage_address if that is not how it is reached, and look at firewalls"
            )
        if reason != self._last_reason:
            self._last_reason = reason
            self._report(
                "warning", f"clients that have waited for {self._seconds:g} s are closed: {reason}"
            )

    async def _connect(self, scheme: str, client: socket.socket, far: RelaySide) -> int:
        """Connect to the owner when there is one; return its epoch.

        Raises:
            NotReached: it does not answer.
        """
        await self._has_owner.wait()
        owner = self._owner
        address = "" if owner is None else owner.addresses.get(scheme, "")
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(RELAY_CONNECT_SECONDS):
                if owner is not None and address and await self._dial(address, client, far):
                    self._last_reason = ""
                    return owner.epoch
        raise NotReached

    async def _dial(self, address: str, client: socket.socket, far: RelaySide) -> bool:
        """Connect to an address; False if it has none that answers."""
        host, _, port = address.rpartition(":")
        addresses = await self._loop.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM
        )
        for family, _, _, _, where in addresses:
            out = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            out.setblocking(False)
            try:
                begin = _beginning(client, str(where[0]))
                if begin:
                    out.bind((begin, 0))
                await self._loop.sock_connect(out, where)
                await self._loop.create_connection(lambda: far, sock=out)
            except OSError:
                out.close()
                continue
            except BaseException:
                out.close()
                raise
            return True
        return False


def _beginning(client: socket.socket, target: str) -> str:
    """Return the address that a connection to the owner has to begin at; "" for any."""
    if not _is_loopback(target) or _is_loopback(client.getpeername()[0]):
        return ""
    return str(client.getsockname()[0]).removeprefix("::ffff:")


def _address(client: socket.socket) -> str | None:
    """Return the address of a client; None if it has gone."""
    try:
        return str(client.getpeername()[0]).removeprefix("::ffff:")
    except OSError:
        return None


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.removeprefix("::ffff:").partition("%")[0]).is_loopback
