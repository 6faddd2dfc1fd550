"""Pass clients of other stores on to the owners of their vhosts, and serve those of others.

    client ---> this broker ---> the cluster port of the owner
            until connection.open: Recorder
            then: what the client has sent, and everything after it, byte for byte

The header of the connection is {"service": "amqp", "peer": {...}}, with the fields of `Peer`; the
bytes of `entropy` are hexadecimal digits.

The front decides that a client is handed over. Reading from it stops then, until the owner has it.
A connection is cut when another broker owns the store: the client connects again.

At the owner the connection is like any other one, of the client's own address, but that its first
answers are not sent, as the client has got them already: see `Peer.replayed`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import cast

import msgspec
from msgspec.structs import asdict, replace

from harebell.base.limits import HANDSHAKE_FRAME_BYTES
from harebell.cluster.forwarder import Client, Forwarder, NotReached, Unreachable
from harebell.cluster.limits import HAND_OVER_BYTES, RELAY_CONNECT_SECONDS, STANDBY_LOOK_SECONDS
from harebell.cluster.link import Header, LinkError, Paused, Service, attach, open_link
from harebell.cluster.stores import OwnerDirectory
from harebell.front.common.handing_over import may_be_handed_over
from harebell.front.common.peer import Peer
from harebell.server.net.elsewhere import RecordedProtocol
from harebell.server.net.relay_side import RelaySide

SERVICE = "amqp"
"""The service at the cluster port that serves clients which another broker has passed on."""
_USER = "user"
"""The member of a client that is no other broker's to say: who it is without a login."""
ProtocolOf = Callable[[Peer], asyncio.BufferedProtocol]
"""Returns the connection of a client, which is not connected yet."""


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
            connection = protocol.connection
            frame = HANDSHAKE_FRAME_BYTES
            if connection is not None:
                frame = max(frame, connection.settings.initial_frame_max)
            limit = HAND_OVER_BYTES - HANDSHAKE_FRAME_BYTES + frame
            if self._size > limit:
                protocol.refuse(f"more than {limit} bytes before connection.open")
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
        if connection is None or transport is None or may_be_handed_over(connection):
            return True
        self._parts = []
        protocol.recorder = None
        transport.set_protocol(cast(asyncio.BaseProtocol, protocol))
        return False


class ClientHandover(Forwarder):
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
        owners: OwnerDirectory,
        seconds: float,
        limit: int,
        report: Callable[[str, str], None],
    ) -> None:
        super().__init__("the owners of other stores", seconds, limit, report)
        self._owners = owners
        self.give: Callable[[int, Peer, asyncio.Transport, bytes], bool] = _not_given
        self._checking: asyncio.TimerHandle | None = None

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
        attach(transport, Paused())
        if not self.has_room():
            transport.close()
            return
        sock = transport.get_extra_info("socket")
        reach, failed = partial(self._connect, vhost, peer), partial(self._failed, vhost, peer)
        self.forward(Client(sock, reach, failed, transport=transport, sent=sent))
        if self._checking is None:
            self._check_owners()

    def close(self) -> None:
        """Cut everything."""
        for client in self.end():
            client.close()
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None

    def _check_owners(self) -> None:
        """Cut the connections to brokers that are no longer the owners, again and again."""
        self._checking = None
        # First: whatever `cut` raises, the owners are checked again.
        if self._waiting or self._claims:
            self._checking = self._loop.call_later(STANDBY_LOOK_SECONDS, self._check_owners)
        owner_of = cache(self._owners.address_of)

        def is_over(claim: tuple[int, int]) -> bool:
            store, epoch = claim
            owner = owner_of(store)
            # One that is not there may only not have been seen: a connection ends with its epoch.
            return owner is not None and owner.epoch != epoch

        self.cut(is_over)

    def _failed(self, vhost: str, peer: Peer, reason: str) -> None:
        why = reason or "it has no owner now"
        text = f"{peer}: cannot be passed on to the owner of vhost '{vhost}': {why}"
        self._report("error", text)

    async def _connect(self, vhost: str, peer: Peer, far: RelaySide) -> tuple[int, int]:
        """Connect to the owner of a vhost; return its store and epoch.

        Raises:
            NotReached: there is none, or it does not answer.
            Unreachable: the client's bytes would go in plain text.
        """
        store = self._owners.store_of(vhost)
        owner = None if store is None else self._owners.address_of(store)
        if store is None or owner is None:
            raise NotReached
        if peer.tls and not (owner.fingerprint or owner.is_local):
            raise Unreachable(
                f"the client has come over TLS, and the broker at {owner.address} has no "
                "TLS at its cluster port: give it a certificate with tls_cert and tls_key"
            )
        try:
            async with asyncio.timeout(RELAY_CONNECT_SECONDS):
                link = await open_link(owner, self._owners.secret, header_of(peer))
        except TimeoutError:
            raise NotReached(f"the broker at {owner.address} does not answer") from None
        except OSError as error:
            text = f"the broker at {owner.address} cannot be reached: {error}"
            raise NotReached(text) from None
        except LinkError as error:
            raise NotReached(str(error)) from None
        attach(link, far)
        return store, owner.epoch


def _not_given(store: int, peer: Peer, transport: asyncio.Transport, sent: bytes) -> bool:
    """Give no client away by its socket."""
    return False


def header_of(peer: Peer) -> Header:
    """Return the header of a connection that passes a client on."""
    members = {name: value for name, value in asdict(peer).items() if name != _USER}
    return {"service": SERVICE, "peer": {**members, "entropy": peer.entropy.hex()}}


def clients_service(protocol_of: ProtocolOf) -> Service:
    """Return what serves handed over clients.

    Args:
        protocol_of: returns what serves a client.
    """

    def serve(header: Header, transport: asyncio.Transport) -> None:
        attach(transport, protocol_of(peer_of(header)))
        if not transport.is_closing():
            transport.resume_reading()

    return serve


def peer_of(header: Header) -> Peer:
    """Return the client that a header is about.

    Raises:
        LinkError: something is missing.
    """
    client = header.get("peer")
    if not isinstance(client, dict):
        raise LinkError("sends a header without the client")
    for each in Peer.__struct_fields__:
        # A default is for those who make a `Peer`: a client without `tls` would count as plain.
        if each != _USER and each not in client:
            raise LinkError(f"sends a header without the client's {each}")
    try:
        entropy = bytes.fromhex(client["entropy"])
        peer = msgspec.convert({**client, "entropy": entropy, _USER: None}, Peer)
    except (TypeError, ValueError) as error:
        raise LinkError(f"sends a header that describes no client: {error}") from None
    return replace(peer, replayed=True)
