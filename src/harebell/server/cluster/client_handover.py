"""Pass clients of other stores on to the owners of their vhosts.

    client ---> this broker ---> the cluster port of the owner
            until connection.open: Recorder
            then: what the client has sent, and everything after it, byte for byte

The front decides that a client is handed over. Reading from it stops then, until the owner has it.
A connection is cut when another broker owns the store: the client connects again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol

from harebell.base.limits import (
    RELAY_CONNECT_SECONDS,
    RELAY_RETRY_SECONDS,
    STANDBY_LOOK_SECONDS,
)
from harebell.front.common.peer import Peer
from harebell.server.cluster.link import Header, LinkError, attach, open_link
from harebell.server.cluster.recorder import Recorder
from harebell.server.cluster.stores import ClusterAddress
from harebell.server.net.departed_peers import DepartureWatch, has_left
from harebell.server.net.elsewhere import RecordedProtocol
from harebell.server.net.relay_side import RelaySide, pair

SERVICE = "amqp"
"""What serves handed over clients: see `harebell.server.cluster.handover_service`."""


class Owners(Protocol):
    """Which broker owns which vhost, as far as this broker knows; every look is cheap."""

    @property
    def secret(self) -> bytes:
        """Return the secret of the cluster."""

    def store_of(self, vhost: str) -> int | None:
        """Return the number of the store of a vhost; None if there is no such vhost."""

    def address_of(self, store: int) -> ClusterAddress | None:
        """Return where the owner of a store is reached; None if it has no owner."""


class _Unreachable(Exception):
    """The owner may not get this client; the text says why."""


class ClientHandover:
    """The clients of one broker whose vhosts are in other stores.

    Args:
        owners: which broker owns which vhost.
        seconds: how long a client may wait for an owner: two leases.
        limit: how many clients there may be.
        report: called with a level and a line.

    Attributes:
        give: gives a client to the owner of a store by its socket, if that is possible: called with
            the store, the client, its connection and what it has sent.
    """

    def __init__(
        self,
        owners: Owners,
        seconds: float,
        limit: int,
        report: Callable[[str, str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._owners = owners
        self._seconds = seconds
        self._limit = limit
        self._report = report
        self._full = False
        self.give: Callable[[int, Peer, asyncio.Transport, bytes], bool] = _not_given
        self._waiting: dict[asyncio.Task[None], RelaySide] = {}
        self._pairs: dict[RelaySide, tuple[int, int]] = {}
        self._looking: asyncio.TimerHandle | None = None
        self._watch = DepartureWatch(self._loop, self._let_go)

    @property
    def connections(self) -> int:
        """Return how many clients are passed on."""
        return len(self._pairs)

    @property
    def waiting(self) -> int:
        """Return how many clients wait for an owner."""
        return len(self._waiting)

    def record(self, protocol: RecordedProtocol) -> None:
        """Keep what a new client sends, until it is known where its vhost is."""
        transport = protocol.transport
        if transport is not None:
            protocol.recorder = recorder = Recorder(protocol)
            transport.set_protocol(recorder)

    def pass_on(self, vhost: str, peer: Peer, transport: asyncio.Transport, sent: bytes) -> None:
        """Pass a client on to the owner of a vhost.

        Args:
            vhost: the one that it opens.
            peer: its addresses, and what TLS found out.
            transport: its connection.
            sent: what it has sent, from the protocol header.
        """
        store = self._owners.store_of(vhost)
        if store is not None and self.give(store, peer, transport, sent):
            return
        near, far = RelaySide(self._loop, self._lost), RelaySide(self._loop)
        pair(near, far)
        attach(transport, near)
        full = len(self._waiting) + len(self._pairs) >= self._limit
        if full and not self._full:
            self._report(
                "warning",
                f"{self._limit} connections are passed on to the owners of other stores and more "
                "are turned away, for each takes two of the files that the process may have "
                "(ulimit -Hn)",
            )
        self._full = full
        if full:
            transport.close()
            return
        task = self._loop.create_task(self._connect(vhost, peer, near, far, sent))
        self._waiting[task] = near
        task.add_done_callback(lambda done: self._waiting.pop(done, None))
        self._watch.begin()

    def _let_go(self) -> bool:
        """Forget the clients that have left; True while others wait."""
        for task, near in list(self._waiting.items()):
            link = near.transport.get_extra_info("socket")
            if link is not None and has_left(link):
                task.cancel()
        return bool(self._waiting)

    def look(self) -> None:
        """Cut the connections to brokers that are no longer the owners."""
        current: dict[int, ClusterAddress | None] = {}
        for near, (store, epoch) in list(self._pairs.items()):
            if store not in current:
                current[store] = self._owners.address_of(store)
            owner = current[store]
            if owner is not None and owner.epoch != epoch:
                near.transport.abort()

    def close(self) -> None:
        """Cut everything."""
        self._watch.end()
        for task, near in list(self._waiting.items()):
            task.cancel()
            near.transport.abort()
        for near in list(self._pairs):
            near.transport.abort()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _lost(self, near: RelaySide) -> None:
        self._pairs.pop(near, None)

    async def _connect(
        self, vhost: str, peer: Peer, near: RelaySide, far: RelaySide, sent: bytes
    ) -> None:
        """Connect a client with the owner; close it if there is none for too long."""
        trouble = ["it has no owner now"]
        try:
            async with asyncio.timeout(self._seconds):
                place = await self._reach(vhost, peer, far, trouble)
            if not near.transport.is_closing() and not far.transport.is_closing():
                self._pairs[near] = place
        except (TimeoutError, _Unreachable) as error:
            why = trouble[0] if isinstance(error, TimeoutError) else str(error)
            text = f"{peer}: cannot be passed on to the owner of vhost '{vhost}': {why}"
            self._report("error", text)
        finally:
            if near not in self._pairs:
                near.transport.close()
                if far.transport is not None:
                    far.transport.abort()
        if near in self._pairs:
            self._look_later()
            far.transport.write(sent)
            near.begin()
            far.begin()

    async def _reach(
        self, vhost: str, peer: Peer, far: RelaySide, trouble: list[str]
    ) -> tuple[int, int]:
        """Connect to the owner as soon as there is one that answers; return store and epoch."""
        pause = RELAY_RETRY_SECONDS
        while True:
            store = self._owners.store_of(vhost)
            owner = None if store is None else self._owners.address_of(store)
            if store is not None and owner is not None:
                if peer.tls and not owner.fingerprint:
                    raise _Unreachable(
                        f"the client has come over TLS, and the broker at {owner.address} has no "
                        "TLS at its cluster port: give it a certificate with tls_cert and tls_key"
                    )
                try:
                    async with asyncio.timeout(RELAY_CONNECT_SECONDS):
                        link = await open_link(owner, self._owners.secret, header_of(peer))
                    attach(link, far)
                    return store, owner.epoch
                except TimeoutError:
                    trouble[0] = f"the broker at {owner.address} does not answer"
                except OSError as error:
                    trouble[0] = f"the broker at {owner.address} cannot be reached: {error}"
                except LinkError as error:
                    trouble[0] = str(error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _look_later(self) -> None:
        if self._looking is None:
            self._looking = self._loop.call_later(STANDBY_LOOK_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._looking = None
        self.look()
        if self._pairs:
            self._look_later()


def _not_given(store: int, peer: Peer, transport: asyncio.Transport, sent: bytes) -> bool:
    """Give no client away by its socket."""
    return False


def header_of(peer: Peer) -> Header:
    """Return the header of a connection that passes a client on."""
    return {"service": SERVICE, "peer": {**asdict(peer), "entropy": peer.entropy.hex()}}
