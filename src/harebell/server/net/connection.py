"""One accepted socket: reads through the shared buffer, writes once per turn, closes gently.

A peer that still sends while we close would make the kernel answer with a reset, which can destroy
the last frames we wrote. So the end is: write what is left, shut the sending side, read and drop
until the peer ends too or time is up.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import termios
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from harebell.base.body_frames import BodyFrames
from harebell.base.limits import (
    FULL_READS_PER_TURN,
    LINGER_SECONDS,
    OUTPUT_STOP_BYTES,
    READ_BUFFER_BYTES,
    WRITE_HIGH_BYTES,
    WRITE_LOW_BYTES,
    WRITE_PIECE_BYTES,
    WRITE_PIECES_PER_TURN,
)
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.peer import Peer
from harebell.server.net.acceptor import cut
from harebell.server.net.certificate import login_name
from harebell.server.net.long_output import LongOutput
from harebell.wire import FINAL_0_10

if TYPE_CHECKING:
    from harebell.server.app import App
    from harebell.server.net.tls import ServerTls

_INT_OCTETS = 4


class ServerProtocol(asyncio.BufferedProtocol):
    """Between a transport and a `BaseConnection`.

    Args:
        app: the broker's shell.
        tls: the listener's side of TLS; None for plain AMQP.
        dialect: what `AMQP 1 1 0 10` means to the listener, as in `Peer`.
    """

    __slots__ = (
        "_app",
        "_dialect",
        "_ended",
        "_ending",
        "_full",
        "_full_reads",
        "_going_on",
        "_plain",
        "_reading",
        "_rest",
        "_resting",
        "_securing",
        "_tls",
        "connection",
        "transport",
    )

    def __init__(self, app: App, tls: ServerTls | None, dialect: str = FINAL_0_10) -> None:
        self._app = app
        self._tls = tls
        self._dialect = dialect
        self._reading = True
        self._full_reads = 0
        self._resting = False
        self._plain: socket.socket | None = None
        self._securing: asyncio.Task[None] | None = None
        self._ended = False
        self._ending: asyncio.TimerHandle | None = None
        self._rest = LongOutput()
        self._full = False
        self._going_on = False
        self.connection: BaseConnection | None = None
        self.transport: asyncio.Transport | None = None

    # --- what the transport calls ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A peer has connected; over TLS, its handshake is done."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES, low=WRITE_LOW_BYTES)
        own = transport.get_extra_info("sockname") or ("", 0)
        there = transport.get_extra_info("peername") or ("", 0)
        if self._tls is None:
            if not self._arrive(there, own):
                self.transport.abort()
            return
        connection = self.connection
        if connection is None or connection.closing:
            self.transport.abort()
            return
        name = login_name(transport.get_extra_info("peercert"), self._app.config.tls_login_from)
        connection.peer = replace(connection.peer, certificate=name)

    def secure(self, link: socket.socket) -> None:
        """Take an accepted socket, and have the loop shake hands over TLS."""
        try:
            there, own = link.getpeername(), link.getsockname()
        except OSError:
            link.close()
            return
        if not self._arrive(there, own):
            link.close()
            return
        self._plain = link
        self._securing = self._app.loop.create_task(self._shake_hands(link))

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next read goes: one buffer for all, used up before the next read.

        What is read of a user who has to wait is kept, so it is little then.
        """
        app = self._app
        return app.small_buffer if app.hub.turns.crowded else app.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Something was read."""
        connection = self.connection
        if connection is not None:
            app = self._app
            app.storage.tell_time()
            if app.timers.due <= app.wall.steady:
                app.run_due()
            connection.receive(app.read_buffer[:nbytes], app.clock())
            if app.hub.dirty:
                app.flush()
            else:
                app.flusher.look()
            if nbytes == READ_BUFFER_BYTES:
                self._take_turns()
            else:
                self._full_reads = 0
            if self.connection is not connection:
                # The protocol header was read: the connection of that version goes on.
                self._adjust_reading()
            elif connection.paused or connection.held_back:
                self._adjust_reading()

    def eof_received(self) -> bool:
        """The peer sends no more."""
        self._gone()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self._gone()
        self._rest = LongOutput()
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        if self.connection is not None:
            self.connection.shell = None
        self.connection = None

    def pause_writing(self) -> None:
        """The peer does not take our output."""
        self._full = True
        if self.connection is not None:
            self.connection.congested = True

    def resume_writing(self) -> None:
        """The peer takes our output again."""
        self._full = False
        self._go_on()

    # --- what the connection calls --------------------------------------------------------------

    def succeed(self, connection: BaseConnection) -> None:
        """The version is known: from now on this is the connection."""
        self.connection = connection

    # --- what the app calls ---------------------------------------------------------------------

    def flush(self, now: float) -> None:
        """Write what the connection has, and see what it wants."""
        connection, transport = self.connection, self.transport
        if connection is None:
            return
        if transport is None:
            if connection.finished:
                self.abort()
            return
        if not self._rest.left:
            for part in connection.take_parts(now):
                if self._rest.left or isinstance(part, BodyFrames) or len(part) > WRITE_PIECE_BYTES:
                    self._rest.add(part)
                else:
                    transport.write(part)
            self._write_rest()
        if self._rest.left:
            # What comes now goes behind it.
            connection.congested = True
            if connection.finished:
                self._cut_in_time()
            self._adjust_reading()
            return
        if connection.finished:
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
        """Whether there is output that the system has not taken."""
        connection, transport = self.connection, self.transport
        if connection is None or transport is None:
            return False
        return connection.held is not None or connection.out.size > 0 or self._unsent_octets() > 0

    def unread(self) -> bool:
        """Whether the system has octets from the peer that were not read yet."""
        link = None if self.transport is None else self.transport.get_extra_info("socket")
        if link is None:
            return False
        count = bytearray(_INT_OCTETS)
        try:
            fcntl.ioctl(link.fileno(), termios.FIONREAD, count)
        except OSError:
            return False
        return any(count)

    # --- inside ---------------------------------------------------------------------------------

    def _arrive(self, there: tuple[Any, ...], own: tuple[Any, ...]) -> bool:
        """Have a connection for a new socket; False when there are too many."""
        app = self._app
        peer = Peer(there[0], there[1], self._tls is not None, own[0], own[1], self._dialect)
        if not app.has_room() or not app.hub.pending_logins.admits(peer.address, app.logger.write):
            return False
        self.connection = app.accept(peer)
        self.connection.shell = self
        if self.connection.closing:
            app.flush_soon()
        return True

    async def _shake_hands(self, link: socket.socket) -> None:
        """The TLS handshake; `connection_made` is called when it is done."""
        app, tls = self._app, self._tls
        assert tls is not None, "only a TLS listener has handshakes"
        try:
            await app.loop.connect_accepted_socket(
                lambda: self,
                link,
                ssl=tls.context,
                # The connection's own deadline, which began with the socket, comes before.
                ssl_handshake_timeout=2 * app.config.handshake_timeout_seconds,
            )
        except OSError as error:
            link.close()
            connection = self.connection
            if connection is not None and not connection.closing:
                why = getattr(error, "reason", None) or str(error) or "the peer ended it"
                app.logger.write("warning", f"{connection.peer}: the TLS handshake failed: {why}")
                connection.remember_failure()
            self._gone()
            self.connection = None
        finally:
            self._plain = None

    def _unsent_octets(self) -> int:
        assert self.transport is not None, "there was somewhere to write to"
        return self.transport.get_write_buffer_size() + self._rest.left

    def _write_rest(self) -> None:
        """Hand a long output over piece by piece: a transport copies whatever it cannot send.

        A peer that reads as fast as we write would keep others waiting, so it has turns.
        """
        transport = self.transport
        assert transport is not None, "there was somewhere to write to"
        for _ in range(WRITE_PIECES_PER_TURN):
            if self._full or not self._rest.left:
                return
            transport.write(self._rest.take(WRITE_PIECE_BYTES))
        if self._rest.left and not self._full and not self._going_on:
            self._going_on = True
            self._app.loop.call_soon(self._next_pieces)

    def _next_pieces(self) -> None:
        """The next turn of a long output."""
        self._going_on = False
        if self.transport is not None and not self._full:
            self._go_on()

    def _go_on(self) -> None:
        """Write more of a long output; behind it, the connection may write again."""
        if self._rest.left:
            self._write_rest()
        connection = self.connection
        if connection is not None and not self._rest.left and not self._full:
            connection.congested = False
            connection.touch()
            self._app.flush_soon()

    def _take_turns(self) -> None:
        """Let other sockets have a turn: the loop would read a busy one again and again."""
        self._full_reads += 1
        if self._full_reads >= FULL_READS_PER_TURN:
            self._full_reads = 0
            self._resting = True
            self._adjust_reading()
            self._app.loop.call_soon(self._rested)

    def _rested(self) -> None:
        self._resting = False
        self._adjust_reading()

    def _adjust_reading(self) -> None:
        connection, transport = self.connection, self.transport
        if connection is None or transport is None or transport.is_closing():
            return
        wanted = not (
            self._resting
            or connection.paused
            or connection.held_back
            or (connection.congested and self._unsent_octets() > OUTPUT_STOP_BYTES)
        )
        if wanted and not self._reading:
            self._reading = True
            transport.resume_reading()
        elif not wanted and self._reading:
            self._reading = False
            transport.pause_reading()

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
        """Close the socket in a while, whether the peer reads what it was sent or not."""
        if self._ending is None:
            self._ending = self._app.loop.call_later(LINGER_SECONDS, self.abort)

    def _gone(self) -> None:
        connection = self.connection
        if connection is not None:
            connection.eof()
            self._app.flush_soon()
