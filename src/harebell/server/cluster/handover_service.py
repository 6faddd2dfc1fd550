"""Serve the clients that other brokers hand over: the service "amqp" of the cluster port.

What the client has sent since its protocol header comes again, and then everything else. The
connection is like any other one, of the client's own address, but that its first answers are not
sent: see `Peer.replayed`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from harebell.front.common.peer import Peer, TlsSession
from harebell.server.cluster.link import Header, LinkError, Service, attach

ProtocolOf = Callable[[Peer], asyncio.BufferedProtocol]
"""Returns the connection of a client, which is not connected yet."""
_TYPES = {
    "address": str,
    "port": int,
    "tls": bool,
    "host": str,
    "host_port": int,
    "dialect": str,
    "certificate": str,
}
"""The members of the header's peer, which have the names of `Peer`."""


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
    found = header.get("peer")
    if not isinstance(found, dict):
        raise LinkError("sends a header without the client")
    fields: dict[str, Any] = {}
    for name, kind in _TYPES.items():
        if not isinstance(found.get(name), kind):
            raise LinkError(f"sends a header without the client's {name}")
        fields[name] = found[name]
    try:
        fields["entropy"] = bytes.fromhex(found.get("entropy", ""))
    except (TypeError, ValueError):
        raise LinkError("sends a header with a wrong challenge") from None
    session = found.get("session")
    if session is not None:
        fields["session"] = _session(session)
    return Peer(**fields, replayed=True)


def _session(found: object) -> TlsSession:
    if (
        not isinstance(found, list)
        or len(found) != len(TlsSession._fields)
        or not all(isinstance(each, str) for each in found)
    ):
        raise LinkError("sends a header with an unknown session of TLS")
    return TlsSession(*found)
