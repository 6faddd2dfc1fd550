"""Give a client to the owner of its vhost on the same machine: its socket, not its bytes.

Every process of a machine has a datagram socket in its data directory. One message has the client,
what it has sent since the protocol header, and its connected socket (SCM_RIGHTS). So a client that
was accepted by another process costs nothing more afterwards.

    line of JSON: the header of a client that is handed over
    then: what the client has sent

It is not always possible: TLS has its state in the process that did the handshake. Then the client
is passed on as if the owner were on another machine.
"""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harebell.base.errors import HarebellError
from harebell.cluster.client_handover import ProtocolOf, header_of, peer_of
from harebell.cluster.limits import (
    LOCAL_CLIENT_BYTES,
    LOCAL_CLIENT_GONE_SECONDS,
    LOCAL_CLIENT_SIGN_SECONDS,
)
from harebell.cluster.link import Paused, attach
from harebell.server.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from harebell.front.common.peer import Peer

NAME = "clients.sock"
"""The socket in the data directory of a process."""
_OWNER_ONLY = 0o177


def give(path: Path, peer: Peer, transport: asyncio.Transport, sent: bytes) -> bool:
    """Give a client to another process of this machine; False if that is not possible.

    Args:
        path: the socket of the process.
        peer: the client.
        transport: its connection, from which nothing more is read here.
        sent: what it has sent, from the protocol header.
    """
    sock = transport.get_extra_info("socket")
    message = json.dumps(header_of(peer)).encode() + b"\n" + sent
    # Output that is not sent yet would be lost with the transport.
    if (
        peer.tls
        or sock is None
        or transport.get_write_buffer_size()
        or len(message) > LOCAL_CLIENT_BYTES
    ):
        return False
    numbers = array.array("i", [sock.fileno()])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.setblocking(False)
        try:
            # If it is full or gone, the way over the cluster port waits for the owner.
            out.sendmsg(
                [message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)], 0, os.fspath(path)
            )
        except OSError:
            return False
    # The other process has a descriptor of its own, so this closes no connection.
    attach(transport, asyncio.Protocol())
    transport.abort()
    return True


def takes_clients(data_dir: Path) -> bool:
    """True if the process of a data directory owns a store, and takes clients.

    One that was killed or hangs does not: it gives no sign. A clock that was set only lets the
    others accept clients for a moment.
    """
    try:
        signed = (data_dir / NAME).stat().st_mtime
    except OSError:
        return False
    return abs(time.time() - signed) < LOCAL_CLIENT_GONE_SECONDS


class Arriving(Paused):
    """Keeps what is read before the connection of a client is made.

    uvloop begins to read after `connection_made`, whatever that has asked for.

    Attributes:
        read: what was read.
    """

    def __init__(self) -> None:
        self.read = b""

    def data_received(self, data: bytes) -> None:
        """Keep input."""
        self.read += data


class LocalHandover:
    """Takes clients from the other processes of this machine.

    Args:
        path: where its socket is made.
        protocol_of: returns what serves a client.
        report: called with a level and a line.

    Raises:
        OSError: the socket cannot be made.
    """

    def __init__(
        self, path: Path, protocol_of: ProtocolOf, report: Callable[[str, str], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._protocol_of = protocol_of
        self._report = report
        self._path = path
        self._taking = BackgroundTasks()
        with suppress(FileNotFoundError):
            path.unlink()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        mask = os.umask(_OWNER_ONLY)
        try:
            self._socket.bind(os.fspath(path))
        finally:
            os.umask(mask)
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._readable)
        self._signing = self._loop.call_later(LOCAL_CLIENT_SIGN_SECONDS, self._sign)

    def _sign(self) -> None:
        """Show the other processes that this one does not hang: see `takes_clients`."""
        self._signing = self._loop.call_later(LOCAL_CLIENT_SIGN_SECONDS, self._sign)
        with suppress(OSError):
            os.utime(self._path)

    def close(self) -> None:
        """Take no more clients."""
        self._signing.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        with suppress(FileNotFoundError):
            self._path.unlink()

    def _readable(self) -> None:
        with suppress(BlockingIOError):
            message, numbers, _, _ = socket.recv_fds(self._socket, LOCAL_CLIENT_BYTES, 1)
            socks = [socket.socket(fileno=each) for each in numbers]
            for sock in socks:
                sock.setblocking(False)
            if len(socks) != 1:
                # The kernel drops it when this process may have no more files.
                self._report("error", "a client of another process was lost: see ulimit -Hn")
                for sock in socks:
                    sock.close()
                return
            self._taking.start(self._take(socks[0], message))

    async def _take(self, sock: socket.socket, message: bytes) -> None:
        """Serve a client."""
        header, _, sent = message.partition(b"\n")
        try:
            peer = peer_of(json.loads(header))
            transport, arriving = await self._loop.connect_accepted_socket(Arriving, sock)
            transport.pause_reading()
        except (HarebellError, OSError, ValueError) as error:
            self._report("warning", f"a client of another process cannot be served: {error}")
            sock.close()
            return
        protocol = self._protocol_of(peer)
        attach(transport, protocol)
        _feed(protocol, sent + arriving.read)
        if not transport.is_closing():
            transport.resume_reading()


def _feed(protocol: asyncio.BufferedProtocol, sent: bytes) -> None:
    """Let a connection read what was read elsewhere."""
    rest = memoryview(sent)
    while rest:
        buffer = memoryview(protocol.get_buffer(len(rest)))
        size = min(len(buffer), len(rest))
        buffer[:size] = rest[:size]
        protocol.buffer_updated(size)
        rest = rest[size:]
