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
from typing import NamedTuple

from harebell.base.limits import RELAY_CONNECT_SECONDS, RELAY_RETRY_SECONDS
from harebell.front.common.pending_logins import PendingLogins
from harebell.server.net.acceptor import Acceptor
from harebell.server.net.asked_address import Asked
from harebell.server.net.departed_peers import DepartureWatch, has_left
from harebell.server.net.handed_sockets import HandedSockets
from harebell.server.net.relay_side import RelaySide, pair


class Owner(NamedTuple):
    """The broker that connections are passed on to.

    Args:
        epoch: of its claim.
        addresses: where it accepts AMQP, "host:port" by scheme.
    """

    epoch: int
    addresses: dict[str, str]


class Relay:
    """Accepts the connections of clients of a standby.

    Args:
        seconds: how long a connection may wait for an owner.
        limit: how many connections there may be.
        report: called with a level and a line.

    Attributes:
        pending_logins: those that wait for an owner; it has limits of them.
    """

    def __init__(self, seconds: float, limit: int, report: Callable[[str, str], None]) -> None:
        self.pending_logins = PendingLogins()
        self._numbers = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._limit = limit
        self._report = report
        self._full = False
        self._left_to_others = False
        self._said = ""
        self._acceptors: list[tuple[Asked, Acceptor]] = []
        self._owner: Owner | None = None
        self._known = asyncio.Event()
        self._waiting: dict[asyncio.Task[None], tuple[str, socket.socket]] = {}
        self._pairs: set[RelaySide] = set()
        self._watch = DepartureWatch(self._loop, self._let_go)

    @property
    def addresses(self) -> list[tuple[str, str, int]]:
        """Return the scheme, the address and the port of everything that listens."""
        found = []
        for asked, acceptor in self._acceptors:
            host, port = acceptor.sockets[0].getsockname()[:2]
            found.append((asked.scheme, host, port))
        return found

    @property
    def connections(self) -> int:
        """Return how many connections are passed on."""
        return len(self._pairs)

    @property
    def waiting(self) -> int:
        """Return how many connections wait for an owner."""
        return len(self._waiting)

    def listen(self, asked: Asked, sockets: list[socket.socket]) -> None:
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
        before, self._owner = self._owner, owner
        if owner is None:
            self._known.clear()
        else:
            self._known.set()
        if before is not None and owner is not None and before.epoch != owner.epoch:
            self._cut()

    def close(self) -> HandedSockets:
        """Cut what is passed on, and return the listening sockets and the clients that wait."""
        listening = [(asked, acceptor.let_go()) for asked, acceptor in self._acceptors]
        self._acceptors = []
        clients = list(self._waiting.values())
        for task in list(self._waiting):
            task.cancel()
        self._waiting = {}
        self._watch.end()
        self._cut()
        return HandedSockets(listening, clients)

    def _cut(self) -> None:
        for each in self._pairs:
            if each.transport is not None:
                each.transport.abort()

    def _accepted(self, scheme: str, client: socket.socket) -> None:
        full = len(self._waiting) + len(self._pairs) >= self._limit
        if full and not self._full:
            self._report(
                "warning",
                f"{self._limit} connections are passed on to the owner and more are turned away, "
                "for each takes two of the files that the process may have (ulimit -Hn)",
            )
        self._full = full
        address = _address(client)
        if full or address is None or not self.pending_logins.admits(address, self._report):
            client.close()
            return
        number = next(self._numbers)
        self.pending_logins.add(number, address)
        task = self._loop.create_task(self._pass_on(scheme, client, number))
        self._waiting[task] = scheme, client
        task.add_done_callback(lambda done: self._waited(done, number))
        self._watch.begin()

    def _let_go(self) -> bool:
        """Forget the clients that have left; True while others wait."""
        for task, (_, client) in list(self._waiting.items()):
            if has_left(client):
                del self._waiting[task]
                task.cancel()
                client.close()
        return bool(self._waiting)

    def _waited(self, task: asyncio.Task[None], number: int) -> None:
        self._waiting.pop(task, None)
        self.pending_logins.remove(number)

    async def _pass_on(self, scheme: str, client: socket.socket, number: int) -> None:
        """Connect a client with the owner; close it if there is none for too long."""
        near, far = RelaySide(self._loop, self._pairs.discard), RelaySide(self._loop)
        pair(near, far)
        try:
            async with asyncio.timeout(self._seconds):
                await self._reach(scheme, client, far)
        except (TimeoutError, OSError):
            client.close()
            self._say_why(scheme)
            return
        except asyncio.CancelledError:
            # The connection to the owner may be there already.
            if far.transport is not None:
                far.transport.abort()
            raise
        self._said = ""
        task = asyncio.current_task()
        if task is None or self._waiting.pop(task, None) is None:
            far.transport.abort()
            return
        self.pending_logins.remove(number)
        self._pairs.add(near)
        try:
            await self._loop.connect_accepted_socket(lambda: near, client)
        except OSError:
            self._pairs.discard(near)
            client.close()
            far.transport.abort()
            return
        if far.transport.is_closing():
            near.transport.close()
            return
        near.begin()
        far.begin()

    def _say_why(self, scheme: str) -> None:
        """Say once why clients are closed that have waited for too long."""
        owner = self._owner
        if owner is None:
            why = "no broker owns the store"
        elif scheme not in owner.addresses:
            why = f"the owner of the store has no port for {scheme}: give all the same ports"
        else:
            why = (
                f"the owner of the store does not answer at {owner.addresses[scheme]}; set its "
                "storage_address if that is not how it is reached, and look at firewalls"
            )
        if why != self._said:
            self._said = why
            self._report(
                "warning", f"clients that have waited for {self._seconds:g} s are closed: {why}"
            )

    async def _reach(self, scheme: str, client: socket.socket, far: RelaySide) -> None:
        """Connect to the owner as soon as there is one that answers."""
        pause = RELAY_RETRY_SECONDS
        while True:
            await self._known.wait()
            address = "" if self._owner is None else self._owner.addresses.get(scheme, "")
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(RELAY_CONNECT_SECONDS):
                    if address and await self._connect(address, client, far):
                        return
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1.0)

    async def _connect(self, address: str, client: socket.socket, far: RelaySide) -> bool:
        """Connect to an address; False if it has none that answers."""
        host, _, port = address.rpartition(":")
        found = await self._loop.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        for family, _, _, _, where in found:
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
