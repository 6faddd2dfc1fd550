r"""Connections between the brokers of a cluster, at the cluster port.

    listener                                                        caller
    harebell-cluster 1 <nonce>\n                               -->
                               <--  <nonce> <proof> {"service": "amqp", ...}\n
    <proof>\n                                                  -->
                               <--  bytes of the service, both ways  -->

Nonces are 32 hexadecimal digits, proofs are HMAC-SHA256 in hexadecimal digits:

    proof of the caller     "caller"   + both nonces + the header in JSON
    proof of the listener   "listener" + both nonces

The caller sends first after the handshake. It sends nothing secret before the listener has proven
that it knows the secret of the cluster. If the listener has a certificate, the caller compares its
fingerprint with the one in the database, which is what brokers trust; names, dates and who has
signed it do not matter.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.base.errors import HarebellError
from harebell.cluster.limits import (
    LINK_HANDSHAKES,
    LINK_LINE_BYTES,
    LINK_SECONDS,
    LINK_YOUNG_SECONDS,
)
from harebell.cluster.postgresql.addresses import host_port
from harebell.cluster.stores import ClusterAddress
from harebell.server.net.acceptor import Acceptor, bound, cut
from harebell.server.net.tls import ServerTls, StartError, tls_context

if TYPE_CHECKING:
    from harebell.config import Config

_GREETING = b"harebell-cluster 1 "
_NONCE_BYTES = 16
_NONCE_DIGITS = 2 * _NONCE_BYTES
_CALLER, _LISTENER = b"caller", b"listener"
_CALL_PARTS = 3
_OWNER_ONLY = 0o600
_LOCAL = "a process of this machine"
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"

Header = Mapping[str, Any]
"""What a connection is for: "service" names what serves it."""
Service = Callable[[Header, asyncio.Transport], None]
"""Serves a connection whose reading is paused; see `attach` and `streams`.

Raises HarebellError if it cannot: the connection is then closed with a line in the log.
"""


class LinkError(HarebellError):
    """A broker of the cluster cannot be reached, or may not be; the text says why."""


class _Handshake(asyncio.Protocol):
    """The lines of a handshake; reading is paused between them.

    Attributes:
        transport: the connection; None before it is there.
    """

    def __init__(self) -> None:
        self.transport: Any = None
        self._data = bytearray()
        self._ended = False
        self._changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the connection."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Gather input."""
        self._data += data
        if len(self._data) > LINK_LINE_BYTES:
            self.transport.pause_reading()
        self._changed.set()

    def eof_received(self) -> None:
        """Note the end of the input."""
        self._ended = True
        self._changed.set()

    def connection_lost(self, _error: Exception | None) -> None:
        """Note the end of the connection."""
        self.eof_received()

    async def next(self) -> bytes:
        """Return the next line without its end.

        Raises:
            LinkError: it is too long, or the peer has ended the connection.
        """
        while b"\n" not in self._data:
            if len(self._data) > LINK_LINE_BYTES:
                raise LinkError(f"sends a line of more than {LINK_LINE_BYTES} bytes")
            if self._ended:
                raise LinkError("has ended the connection")
            self._changed.clear()
            await self._changed.wait()
        line, _, rest = self._data.partition(b"\n")
        if len(line) > LINK_LINE_BYTES:
            raise LinkError(f"sends a line of more than {LINK_LINE_BYTES} bytes")
        self._data = rest
        return bytes(line)

    def end(self) -> asyncio.Transport:
        """Return the connection after the handshake, with reading paused.

        Raises:
            LinkError: the peer has sent more than its turn allows, or has gone.
        """
        if self._ended or self.transport.is_closing():
            raise LinkError("has ended the connection")
        if self._data:
            raise LinkError("sends more than a handshake")
        self.transport.pause_reading()
        transport: asyncio.Transport = self.transport
        return transport


class ClusterListener:
    """The cluster port of a broker.

    Args:
        services: what serves connections, by the name in their headers.
        secret: of the cluster.
        tls: the certificate; None for plain TCP.
        report: called with a level and a line.
    """

    def __init__(
        self,
        services: Mapping[str, Service],
        secret: bytes,
        tls: LinkTls | None,
        report: Callable[[str, str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._services = services
        self._secret = secret
        self._tls = tls
        self._report = report
        self._full = False
        self._greeting: dict[asyncio.Task[None], tuple[str, float]] = {}
        self._acceptor: Acceptor | None = None

    async def listen(self, host: str, port: int) -> None:
        """Begin to listen.

        Args:
            host: an address, or a name of one.
            port: 0 for a free one.

        Raises:
            OSError: the address cannot be bound.
        """
        sockets = await bound(self._loop, host, port)
        self._acceptor = Acceptor(self._loop, sockets, self._accepted)

    def listen_locally(self, path: Path) -> None:
        """Begin to listen at a Unix socket, in place of one that an ended process has left.

        Raises:
            OSError: it cannot be made.
        """
        path.unlink(missing_ok=True)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(os.fspath(path))
            path.chmod(_OWNER_ONLY)
            made.listen(LINK_HANDSHAKES)
            made.setblocking(False)
        except OSError:
            made.close()
            raise
        self._acceptor = Acceptor(self._loop, [made], self._accepted)

    @property
    def host(self) -> str:
        """Return the address that it listens on."""
        return str(self._name()[0])

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return int(self._name()[1])

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the certificate for new connections; "" for plain TCP."""
        return "" if self._tls is None else self._tls.fingerprint

    def close(self) -> None:
        """Stop listening; connections that belong to a service stay."""
        if self._acceptor is not None:
            self._acceptor.close()
        for task in list(self._greeting):
            task.cancel()

    def _name(self) -> tuple[Any, ...]:
        assert self._acceptor is not None, "it listens before it is asked where"
        name: tuple[Any, ...] = self._acceptor.sockets[0].getsockname()
        return name

    def _accepted(self, link: socket.socket) -> None:
        full = len(self._greeting) >= LINK_HANDSHAKES
        if full and not self._makes_room(warns=not self._full):
            link.close()
            return
        self._full = full
        try:
            name = link.getpeername()
        except OSError:
            link.close()  # it has gone
            return
        is_local = link.family == socket.AF_UNIX
        host, caller = (_LOCAL, _LOCAL) if is_local else (name[0], host_port(*name[:2]))
        task = self._loop.create_task(self._greet(link, caller))
        self._greeting[task] = host, self._loop.time()
        task.add_done_callback(lambda done: self._greeting.pop(done, None))

    def _makes_room(self, *, warns: bool) -> bool:
        """Cut the oldest handshake of the address with the most; False if it is a young one.

        A broker needs milliseconds for its own, so a stranger who opens more and more connections
        keeps no broker out. When all clients of a broker come at once, none of theirs is cut.
        """
        host, count = Counter(host for host, _ in self._greeting.values()).most_common(1)[0]
        oldest = next(task for task, (each, _) in self._greeting.items() if each == host)
        makes = self._loop.time() - self._greeting[oldest][1] >= LINK_YOUNG_SECONDS
        if makes:
            del self._greeting[oldest]
            oldest.cancel()
        if warns and makes:
            self._report(
                "warning",
                f"{LINK_HANDSHAKES} connections at the cluster port have not proven that they "
                f"belong to the cluster, {count} of them from {host}: the oldest of these are cut",
            )
        return makes

    async def _greet(self, link: socket.socket, caller: str) -> None:
        """Do the handshake of a connection, and give it to its service."""
        lines = _Handshake()
        try:
            async with asyncio.timeout(LINK_SECONDS):
                await self._loop.connect_accepted_socket(
                    lambda: lines,
                    link,
                    ssl=None if self._tls is None else self._tls.context,
                    ssl_handshake_timeout=None if self._tls is None else LINK_SECONDS,
                )
                await self._serve(lines)
        except TimeoutError:
            self._refuse(lines, link, caller, "does not finish the handshake in time")
        except LinkError as error:
            self._refuse(lines, link, caller, str(error))
        except HarebellError as error:
            self._refuse(lines, link, caller, f"cannot be served: {error}")
        except OSError as error:
            self._refuse(lines, link, caller, f"failed in its handshake: {_why(error)}")
        except asyncio.CancelledError:
            _cut_off(lines, link)
            raise

    async def _serve(self, lines: _Handshake) -> None:
        nonce = _nonce()
        lines.transport.write(_GREETING + nonce + b"\n")
        parts = (await lines.next()).split(b" ", _CALL_PARTS - 1)
        if len(parts) != _CALL_PARTS or len(parts[0]) != _NONCE_DIGITS:
            raise LinkError("does not belong to the cluster: it sends something else")
        nonces, proof, text = nonce + parts[0], parts[1], parts[2]
        if not hmac.compare_digest(proof, _proof(self._secret, _CALLER + nonces + text)):
            raise LinkError("does not belong to the cluster: it does not know the secret")
        header = _header(text)
        service = self._services.get(str(header.get("service")))
        if service is None:
            raise LinkError(f"asks for the service '{header.get('service')}', which is not here")
        transport = lines.end()
        transport.write(_proof(self._secret, _LISTENER + nonces) + b"\n")
        service(header, transport)

    def _refuse(self, lines: _Handshake, link: socket.socket, caller: str, why: str) -> None:
        self._report("warning", f"cluster port: {caller} {why}")
        _cut_off(lines, link)


async def open_link(where: ClusterAddress, secret: bytes, header: Header) -> asyncio.Transport:
    """Connect to the cluster port of another broker.

    Args:
        where: the other broker.
        secret: of the cluster.
        header: what the connection is for.

    Returns:
        The connection, with reading paused; see `attach` and `streams`.

    Raises:
        OSError: nothing answers there.
        LinkError: what answers is not the broker in question.
    """
    text = json.dumps(header, separators=(",", ":")).encode()
    # The nonce and the proof are in the same line, which the listener limits.
    if len(text) > LINK_LINE_BYTES // 2:
        raise LinkError(f"the header of the connection has {len(text)} bytes, which is too long")
    lines = _Handshake()
    context = _calling_context() if where.fingerprint else None
    await _connect(where, lines, context)
    try:
        if context is not None:
            _compare(where, lines.transport)
        await _call(lines, secret, text)
        return lines.end()
    except LinkError as error:
        lines.transport.abort()
        raise LinkError(f"the broker at {where.address} {error}") from None
    except BaseException:
        lines.transport.abort()
        raise


async def _connect(
    where: ClusterAddress, lines: _Handshake, context: ssl.SSLContext | None
) -> None:
    loop = asyncio.get_running_loop()
    if where.is_local:
        await loop.create_unix_connection(lambda: lines, where.address)
        return
    host, _, port = where.address.rpartition(":")
    await loop.create_connection(
        lambda: lines,
        host.strip("[]"),
        int(port),
        ssl=context,
        # None would mean the host, and its name would be sent and compared.
        server_hostname=None if context is None else "",
    )


async def _call(lines: _Handshake, secret: bytes, text: bytes) -> None:
    """Do the caller's part of the handshake."""
    greeting = await lines.next()
    theirs = greeting.removeprefix(_GREETING)
    if theirs == greeting or len(theirs) != _NONCE_DIGITS:
        raise LinkError("does not greet as a cluster port: is the address that of another service?")
    nonce = _nonce()
    proof = _proof(secret, _CALLER + theirs + nonce + text)
    lines.transport.write(b" ".join((nonce, proof, text)) + b"\n")
    try:
        answer = await lines.next()
    except LinkError as error:
        raise LinkError(f"{error}: its log says why") from None
    if not hmac.compare_digest(answer, _proof(secret, _LISTENER + theirs + nonce)):
        raise LinkError("does not know the secret of the cluster")


class Paused(asyncio.Protocol):
    """Reads nothing until another protocol takes its place."""

    def connection_made(self, transport: Any) -> None:
        """Read nothing."""
        transport.pause_reading()


def attach(transport: asyncio.Transport, protocol: asyncio.BaseProtocol) -> None:
    """Give a connection a protocol; reading stays paused."""
    transport.set_protocol(protocol)
    protocol.connection_made(transport)


def streams(
    transport: asyncio.Transport,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection as a reader and a writer, and begin to read."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    attach(transport, protocol)
    transport.resume_reading()
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _compare(where: ClusterAddress, transport: asyncio.Transport) -> None:
    """Compare the certificate with the one that the database knows.

    Raises:
        LinkError: it is another one.
    """
    encoded = transport.get_extra_info("ssl_object").getpeercert(True)
    fingerprint = fingerprint_of(encoded or b"")
    if not hmac.compare_digest(fingerprint, where.fingerprint):
        raise LinkError(
            f"has a certificate with the fingerprint {fingerprint}, and the database says "
            f"{where.fingerprint}"
        )


def _calling_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # `_compare` compares the fingerprint with that in the database, which says more than a name.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _header(text: bytes) -> Header:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise LinkError("sends a header that is no object of JSON")
    return header


def _nonce() -> bytes:
    return os.urandom(_NONCE_BYTES).hex().encode()


def _proof(secret: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, data, hashlib.sha256).hex().encode()


def _why(error: OSError) -> str:
    return getattr(error, "reason", None) or str(error) or "the peer ended it"


def _cut_off(lines: _Handshake, link: socket.socket) -> None:
    if lines.transport is not None:
        lines.transport.abort()
    else:
        cut(link)
        link.close()


class LinkTls:
    """The TLS context of the cluster port.

    Clients may have to show certificates of their own; brokers prove who they are with the secret
    of the cluster. So the cluster port has a context of its own, which is made again when the
    broker reads its files again.

    Args:
        tls: the one of the listeners for clients.

    Raises:
        StartError: a file is missing or unusable.
    """

    def __init__(self, tls: ServerTls) -> None:
        self._tls = tls
        self._seen = tls.context
        self._context = _without_client_certificates(tls.config)
        self._fingerprint = _fingerprint(tls.config)

    @property
    def context(self) -> ssl.SSLContext:
        """Return the context for new connections."""
        self._read_again()
        return self._context

    @property
    def fingerprint(self) -> str:
        """Return SHA-256 of the certificate for new connections, in hexadecimal digits."""
        self._read_again()
        return self._fingerprint

    def _read_again(self) -> None:
        """Use the files that the listeners use; those from before if they cannot be read again."""
        if self._tls.context is self._seen:
            return
        self._seen = self._tls.context
        try:
            self._context = _without_client_certificates(self._tls.config)
            self._fingerprint = _fingerprint(self._tls.config)
        except StartError:
            return


def fingerprint_of(encoded: bytes) -> str:
    """Return SHA-256 of a certificate in DER, in hexadecimal digits."""
    return hashlib.sha256(encoded).hexdigest()


def _without_client_certificates(config: Config) -> ssl.SSLContext:
    context = tls_context(config)
    context.verify_mode = ssl.CERT_NONE
    return context


def _fingerprint(config: Config) -> str:
    """Return the fingerprint of the first certificate in the file, which is the broker's."""
    path = config.tls_cert or ""
    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
        block = _BEGIN + text.partition(_BEGIN)[2].partition(_END)[0] + _END
        return fingerprint_of(ssl.PEM_cert_to_DER_cert(block))
    except (OSError, ValueError) as error:
        raise StartError(f"cannot read the certificate {path}: {error}") from None
