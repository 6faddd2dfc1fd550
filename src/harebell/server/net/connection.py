"""One accepted socket: read into a shared buffer, write once per turn, close without a reset.

If a socket is closed while the peer still sends, the kernel answers with a reset, and the peer can
lose the last frames that were written. So the order is: write the remaining output, shut down the
sending side, and read and discard until the peer closes too or `tcp_linger_seconds` have passed.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import termios
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from harebell.base.body_frames import BodyFrames
from harebell.base.c_types import C, Cpdef, Py, i32, isize
from harebell.base.limits import READ_BUFFER_BYTES
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.peer import Peer, TlsSession
from harebell.front.limits import OUTPUT_STOP_BYTES
from harebell.server.event_turns import EventTurns
from harebell.server.limits import (
    FULL_READS_PER_TURN,
    PACE_READ_BYTES,
    PACE_SECONDS,
    WRITE_HIGH_BYTES,
    WRITE_LOW_BYTES,
    WRITE_PIECE_BYTES,
    WRITE_PIECES_PER_TURN,
)
from harebell.server.net.acceptor import IPV4_IN_IPV6, cut
from harebell.server.net.certificate import distinguished_name, login_name, validity
from harebell.server.net.cipher_suite import cipher_suite
from harebell.server.net.long_output import LongOutput
from harebell.wire import FINAL_0_10
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLObject

    from harebell.server.app import App
    from harebell.server.net.elsewhere import Recording
    from harebell.server.net.tls import ServerTls

_INT_BYTES = 4
_OPEN: C[Any] = ConnectionState.OPEN
_FULL_READ: isize = READ_BUFFER_BYTES
_PACED_READ: isize = PACE_READ_BYTES
_PIECE_BYTES: isize = WRITE_PIECE_BYTES


class SocketEnd:
    """Connects an asyncio transport to a `BaseConnection`.

    Args:
        app: the broker process.
        tls: the TLS context of the listener; None for plain AMQP.
        dialect: the version that the header `AMQP 1 1 0 10` selects, as in `Peer`.
        addresses: those of the peer and of the broker, if not the ones of the socket: a load
            balancer passes the connection on.
        peer: the client, if another broker hands it over; None otherwise.

    Attributes:
        connection: None after its end.
        recorder: keeps what the client sends until it is known which broker serves it; None if that
            is known.
        transport: None before the end of a TLS handshake.
    """

    def __init__(
        self,
        app: App,
        tls: ServerTls | None,
        dialect: str = FINAL_0_10,
        addresses: tuple[tuple[Any, ...], tuple[Any, ...]] | None = None,
        peer: Peer | None = None,
    ) -> None:
        self._app = app
        self._turns: EventTurns = app.turns
        self._peer = peer
        self._addresses: Py[tuple[tuple[Any, ...], tuple[Any, ...]] | None] = addresses
        self._tls = tls
        self._dialect: Py[str] = dialect
        self._reading = True
        self._full_reads: i32 = 0
        self._resting = False
        self._plain: socket.socket | None = None
        self._securing: asyncio.Task[None] | None = None
        self._ended = False
        self._ending: asyncio.TimerHandle | None = None
        self._rest: LongOutput | None = None
        self._full = False
        self._going_on = False
        self.connection: BaseConnection | None = None
        self.recorder: Recording | None = None
        self.transport: asyncio.Transport | None = None

    # --- called by the transport ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start a plain connection, or store the certificate name after a TLS handshake."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES, low=WRITE_LOW_BYTES)
        if not self._app.config.tcp_nodelay:
            # asyncio has set it.
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        if self._tls is None:
            there, own = self._addresses or (
                transport.get_extra_info("peername") or ("", 0),
                transport.get_extra_info("sockname") or ("", 0),
            )
            if not self._arrive(there, own):
                self.transport.abort()
                return
        else:
            connection = self.connection
            if connection is None or connection.closing:
                # The handshake took too long, or the broker stops.
                self.transport.abort()
                return
            session = transport.get_extra_info("ssl_object")
            certificate = session.getpeercert() or {}
            connection.peer = replace(
                connection.peer,
                certificate=login_name(certificate, self._app.config.tls_login_from),
                session=_session(session, certificate),
            )
        handing_over = self._app.handing_over
        if handing_over is not None and self._peer is None:
            handing_over.record(self)

    def secure(self, sock: socket.socket) -> None:
        """Create the connection of an accepted socket, and start its TLS handshake."""
        try:
            there, own = self._addresses or (sock.getpeername(), sock.getsockname())
        except OSError:
            sock.close()
            return
        # Before the handshake, which costs far more than an accepted socket: it counts as a login
        # that is pending, and the handshake timeout of the connection runs.
        if not self._arrive(there, own):
            sock.close()
            return
        self._plain = sock
        self._securing = self._app.loop.create_task(self._shake_hands(sock))

    def get_buffer(self, sizehint: int) -> C[memoryview]:
        """Return the shared read buffer; its content is consumed before the next read."""
        connection = self.connection
        if connection is None:
            return self._turns.buffer(False, False)
        return self._turns.buffer(connection.state is _OPEN, connection.outruns)

    def buffer_updated(self, nbytes: isize) -> C[None]:
        """Pass the bytes that were read to the connection."""
        connection = self.connection
        if connection is not None:
            self._turns.receive(connection, nbytes)
            if connection.outruns and nbytes >= _PACED_READ:
                self._keep_pace()
            elif nbytes == _FULL_READ:
                self._take_turns()
            else:
                self._full_reads = 0
            if self.connection is not connection:
                # The protocol header was read: `succeed` has replaced the connection.
                self._adjust_reading()
            elif connection.paused or connection.held_back:
                self._adjust_reading()

    def eof_received(self) -> bool:
        """Handle the end of the input; False lets the transport close itself."""
        self._gone()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection after the socket was closed."""
        self._gone()
        self._rest = None
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        if self.connection is not None:
            self.connection.transport = None
        self.connection = None

    def pause_writing(self) -> None:
        """Stop writing: the buffer of the transport is above its high-water mark."""
        self._full = True
        if self.connection is not None:
            self.connection.congested = True

    def resume_writing(self) -> None:
        """Continue writing: the buffer of the transport is below its low-water mark."""
        self._full = False
        self._go_on()

    # --- called by the connection -----------------------------------------------------------------

    def succeed(self, connection: BaseConnection) -> None:
        """Replace the connection, when the protocol header has selected the version."""
        self.connection = connection

    # --- called by the recorder -------------------------------------------------------------------

    def refuse(self, why: str) -> None:
        """Close a connection that is not open yet, with a line in the log."""
        connection = self.connection
        if connection is not None and not connection.closing:
            connection.log("error", f"{connection.peer}: {why}: closed")
            connection.remember_failure()
            connection.cut()
            self._app.flush_soon()

    # --- called by the app ------------------------------------------------------------------------

    def flush(self, now: float) -> C[None]:
        """Write the output of the connection, then end it or adjust reading."""
        connection: BaseConnection | None
        connection, transport = self.connection, self.transport
        if connection is None:
            return
        if transport is None:
            if connection.finished:
                self.abort()
            return
        if self._rest is None:
            for part in connection.take_parts(now):
                if (
                    self._rest is None
                    and not isinstance(part, BodyFrames)
                    and len(part) <= _PIECE_BYTES
                ):
                    transport.write(part)
                    continue
                if self._rest is None:
                    self._rest = LongOutput()
                self._rest.add(part)
            self._write_rest()
        if self._rest is not None:
            # New output is written after the rest.
            connection.congested = True
            if connection.finished:
                self._cut_in_time()
            self._adjust_reading()
            return
        if connection.finished:
            if connection.handed_over:
                self._hand_over(connection)
            else:
                self._end()
            return
        if not connection.congested:
            connection.relieved()
            connection.resume(now)
        self._adjust_reading()

    def abort(self) -> None:
        """Close the socket at once."""
        if self.transport is not None:
            self.transport.abort()
        elif self._plain is not None:
            cut(self._plain)

    def unsent(self) -> bool:
        """True if there is output that the kernel has not accepted yet."""
        connection, transport = self.connection, self.transport
        if connection is None or transport is None:
            return False
        return connection.held is not None or connection.out.size > 0 or self._unsent_bytes() > 0

    def unread(self) -> bool:
        """True if the kernel has unread bytes from the peer."""
        sock = None if self.transport is None else self.transport.get_extra_info("socket")
        if sock is None:
            return False
        count = bytearray(_INT_BYTES)
        try:
            fcntl.ioctl(sock.fileno(), termios.FIONREAD, count)
        except OSError:
            return False
        return any(count)

    # --- private ----------------------------------------------------------------------------------

    def _arrive(self, there: tuple[Any, ...], own: tuple[Any, ...]) -> bool:
        """Create the connection of a new socket; False if there are too many connections."""
        app = self._app
        peer = self._peer or Peer(
            there[0].removeprefix(IPV4_IN_IPV6),
            there[1],
            self._tls is not None,
            own[0].removeprefix(IPV4_IN_IPV6),
            own[1],
            self._dialect,
        )
        if not app.has_room() or not app.registry.pending_logins.admits(
            peer.address, app.logger.write
        ):
            return False
        self.connection = app.accept(peer)
        self.connection.transport = self
        if self.connection.closing:
            app.flush_soon()
        return True

    async def _shake_hands(self, sock: socket.socket) -> None:
        """Do the TLS handshake; at its end `connection_made` is called."""
        app, tls = self._app, self._tls
        assert tls is not None, "only a TLS listener has handshakes"
        try:
            if self.connection is not None:
                await app.hellos.turn(sock, self.connection.peer.address)
            await app.loop.connect_accepted_socket(
                lambda: cast(asyncio.BufferedProtocol, self),
                sock,
                ssl=tls.context,
                # Only a backstop: the handshake timeout of the connection expires first.
                ssl_handshake_timeout=2 * app.config.handshake_timeout_seconds,
            )
        except OSError as error:
            sock.close()
            connection = self.connection
            if connection is not None and not connection.closing:
                why = getattr(error, "reason", None) or str(error) or "the peer ended it"
                app.logger.write("warning", f"{connection.peer}: the TLS handshake failed: {why}")
                connection.remember_failure()
            self._gone()
            self.connection = None
        finally:
            self._plain = None

    def _unsent_bytes(self) -> isize:
        assert self.transport is not None, "there was somewhere to write to"
        left = 0 if self._rest is None else self._rest.left
        return self.transport.get_write_buffer_size() + left

    def _write_rest(self) -> C[None]:
        """Write a long output in pieces, because a transport copies what it cannot send.

        A peer that reads as fast as this writes would block the loop, so the pieces per turn are
        limited.
        """
        rest, transport = self._rest, self.transport
        if rest is None:
            return
        assert transport is not None, "there was somewhere to write to"
        for _ in range(WRITE_PIECES_PER_TURN):
            if self._full:
                return
            transport.writelines(rest.take(_PIECE_BYTES))
            if not rest.left:
                self._rest = None
                return
        if not self._full and not self._going_on:
            self._going_on = True
            self._app.loop.call_soon(self._next_pieces)

    def _next_pieces(self) -> None:
        """Continue a long output in the next turn."""
        self._going_on = False
        if self.transport is not None and not self._full:
            self._go_on()

    def _go_on(self) -> Cpdef[None]:
        """Write more of a long output; after its end the connection may write again."""
        self._write_rest()
        connection = self.connection
        if connection is not None and self._rest is None and not self._full:
            connection.congested = False
            connection.touch()
            self._app.flush_soon()

    def _take_turns(self) -> C[None]:
        """Pause reading for a turn after several full reads, so that other sockets are read."""
        self._full_reads += 1
        if self._full_reads >= FULL_READS_PER_TURN:
            self._full_reads = 0
            self._resting = True
            self._adjust_reading()
            self._app.loop.call_soon(self._rested)

    def _keep_pace(self) -> C[None]:
        """Pause reading for a moment, in which consumers catch up with this publisher."""
        self._full_reads = 0
        self._resting = True
        self._adjust_reading()
        self._app.loop.call_later(PACE_SECONDS, self._rested)

    def _rested(self) -> None:
        self._resting = False
        self._adjust_reading()

    def _adjust_reading(self) -> C[None]:
        connection: BaseConnection | None
        connection, transport = self.connection, self.transport
        if connection is None or transport is None or transport.is_closing():
            return
        reads = not (
            self._resting
            or connection.paused
            or connection.held_back
            or (connection.congested and self._unsent_bytes() > OUTPUT_STOP_BYTES)
        )
        if reads and not self._reading:
            self._reading = True
            transport.resume_reading()
        elif not reads and self._reading:
            self._reading = False
            transport.pause_reading()

    def _hand_over(self, connection: BaseConnection) -> None:
        """Give the socket away, with what the client has sent: another broker serves it."""
        handing_over, recorder, transport = self._app.handing_over, self.recorder, self.transport
        if transport is None or transport.is_closing():
            return
        if handing_over is None or recorder is None:
            # It was accepted before this broker knew of other stores.
            transport.abort()
            return
        self.connection = self.transport = self.recorder = None
        connection.transport = None
        connection.eof()
        handing_over.pass_on(connection.handed_over, connection.peer, transport, recorder.take())

    def _end(self) -> None:
        transport = self.transport
        if self._ended or transport is None or transport.is_closing():
            return
        self._ended = True
        if not self._reading:
            self._reading = True
            transport.resume_reading()
        if not transport.can_write_eof():
            transport.close()
            return
        transport.write_eof()
        self._cut_in_time()

    def _cut_in_time(self) -> None:
        """Close the socket after `tcp_linger_seconds`, even if the peer has not read the output."""
        if self._ending is None:
            self._ending = self._app.loop.call_later(
                self._app.config.tcp_linger_seconds, self.abort
            )

    def _gone(self) -> None:
        connection = self.connection
        if connection is not None and not connection.gone:
            connection.eof()
            self._app.flush_soon()


class ServerProtocol(SocketEnd, asyncio.BufferedProtocol):
    """A socket end with the type by which asyncio's own loop knows who gives a buffer.

    A compiled class cannot inherit from a class of asyncio itself.
    """

    __slots__ = ()


def _session(session: SSLObject, certificate: Mapping[str, Any]) -> TlsSession:
    """Return what a handshake ended with.

    Args:
        session: a handshake that is complete.
        certificate: the peer's, as `SSLObject.getpeercert` gives it.
    """
    cipher = session.cipher()
    return TlsSession(
        (session.version() or "").lower(),
        *cipher_suite(cipher[0] if cipher else ""),
        distinguished_name(certificate.get("subject", ())),
        distinguished_name(certificate.get("issuer", ())),
        validity(certificate),
    )
