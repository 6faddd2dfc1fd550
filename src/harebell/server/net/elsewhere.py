"""What the connections of clients need of other stores, if the broker is in a cluster of several.

`harebell.cluster.client_handover` does it.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.peer import Peer


class Recording(Protocol):
    """Keeps what a client sends until it is known which broker serves it."""

    def take(self) -> bytes:
        """Return what the client has sent, and forget it."""


class RecordedProtocol(Protocol):
    """The connection of a client, as it is recorded: see `ServerProtocol`.

    Attributes:
        connection: None after its end.
        recorder: None when it is known which broker serves the client.
        transport: None before the end of a TLS handshake.
    """

    connection: BaseConnection | None
    recorder: Recording | None
    transport: asyncio.Transport | None

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read."""

    def buffer_updated(self, nbytes: int) -> None:
        """Serve what was read."""

    def eof_received(self) -> bool:
        """Handle the end of the input."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""

    def pause_writing(self) -> None:
        """Write no more for now."""

    def resume_writing(self) -> None:
        """Write again."""

    def refuse(self, why: str) -> None:
        """Close a connection that is not open yet, with a line in the log."""


class Elsewhere(Protocol):
    """Passes clients on to the owners of their vhosts: see `ClientHandover`."""

    @property
    def connections(self) -> int:
        """Return how many clients are passed on."""

    @property
    def waiting(self) -> int:
        """Return how many clients wait for an owner."""

    def record(self, protocol: RecordedProtocol) -> None:
        """Keep what a new client sends, until it is known where its vhost is."""

    def pass_on(self, vhost: str, peer: Peer, transport: asyncio.Transport, sent: bytes) -> None:
        """Pass a client on to the owner of a vhost."""

    def close(self) -> None:
        """Cut everything."""
