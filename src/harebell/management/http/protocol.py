"""One HTTP connection: uvicorn's, read in bounded pieces and for a bounded time.

uvicorn parses what arrives at once, keeps as much of a body as one read brings, and has no deadline
for a request. Here input waits in a buffer of HTTP_HEAD_BYTES, which is not read into while it is
full, and goes to the parser in pieces: one head, or a part of a body that is cheap to parse. Each
piece is parsed in a turn of its own, so that many connections, and many requests of one, share the
event loop with everything else.

    waiting   for a request, or the rest of one    has a deadline
    running   the request is complete, or its user has logged in: the broker is to act
    ended     the rest of the input is dropped until the client has read why
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, cast

import h11
import msgspec
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from harebell.management.limits import (
    HTTP_EARLY_BODY_BYTES,
    HTTP_HEAD_BYTES,
    HTTP_HEAD_LINES,
    HTTP_LINGER_SECONDS,
    HTTP_PIECE_BYTES,
    HTTP_PIECE_LINES,
)
from harebell.server.net.acceptor import cut

if TYPE_CHECKING:
    from logging import Logger

    from uvicorn import Config
    from uvicorn.server import ServerState

    from harebell.management.http.connections import HttpConnections

_HEAD_END = re.compile(rb"\n\r?\n")
_FRAMED = (re.compile(rb"(?i)\ncontent-length:"), re.compile(rb"(?i)\ntransfer-encoding:"))
_FIRST_PRINTABLE = 0x21
_numbers = count(1)


class _Flow(FlowControl):
    """Tells a connection that its application has taken a part of a body.

    Args:
        transport: that of the connection.
        wake: called then.
    """

    def __init__(self, transport: asyncio.Transport, wake: Callable[[], None]) -> None:
        super().__init__(transport)
        self._wake = wake

    def pause_reading(self) -> None:
        """Do nothing: what is read depends on what is kept."""

    def resume_reading(self) -> None:
        """Go on with the input."""
        self._wake()


class _Answers:
    """What uvicorn writes answers to.

    Args:
        transport: that of the connection.
        close: called after the last answer, in place of the transport's.
    """

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = close


class GuardedConnection(H11Protocol):
    """A connection of a client.

    Args:
        config: uvicorn's configuration, with the application.
        state: of uvicorn's server.
        connections: those of the port.
        sock: the socket.
        address: the address of the client.
        log: takes uvicorn's lines.

    Attributes:
        number: identifies it.
        turns: lets its application go on between other work.
    """

    def __init__(
        self,
        config: Config,
        state: ServerState,
        connections: HttpConnections,
        sock: socket.socket,
        address: str,
        log: Logger,
    ) -> None:
        super().__init__(config, state, {"connection": self}, asyncio.get_running_loop())
        self.number = next(_numbers)
        self.turns = connections.turns
        self.logger = log
        self._connections = connections
        self._sock: socket.socket | None = sock
        self._address = address
        self._input = bytearray()
        self._searched = 0
        self._waits = False
        self._is_logged_in = False
        self._between = False
        self._ended = False
        self._deadline = monotonic() + connections.request_seconds
        self._unsent = 0
        self._unsent_since = 0.0

    # --- called by the transport ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, at the end of the TLS handshake if there is one."""
        made = cast(asyncio.Transport, transport)
        super().connection_made(made)
        self.flow = _Flow(made, self.handle_events)
        self._answers = cast(asyncio.Transport, _Answers(made, self._close))
        if self.client is not None:
            self.client = (self._address, self.client[1])
        self._sock = None
        if self._ended:
            # Cut during its TLS handshake, before there was a transport to abort.
            made.abort()

    def room(self) -> memoryview:
        """Return where as much is read to as may be read ahead."""
        return self._connections.buffer[: max(1, HTTP_HEAD_BYTES - len(self._input))]

    def read(self, nbytes: int) -> None:
        """Keep what was read until the next turn."""
        if self._ended:
            return
        # The first octet of the next request begins its time, which is shorter than that between
        # two.
        if self._between:
            self._between = False
            self._deadline = monotonic() + self._connections.request_seconds
        self._input += self._connections.buffer[:nbytes]
        self.handle_events()
        self._adjust_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back all that it has."""
        self._connections.remove(self.number)
        self._input.clear()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.app_state.clear()

    # --- called by uvicorn ------------------------------------------------------------------------

    def handle_events(self) -> None:
        """Go on in a later turn."""
        if not self._waits:
            self._waits = True
            self.turns.wait(self._go_on)

    def on_response_complete(self) -> None:
        """Wait for the rest of the body, which no command needs, or for the next request."""
        self._is_logged_in = False
        self._deadline = monotonic() + self._connections.request_seconds
        super().on_response_complete()
        # The deadline is the time-out.
        self._unset_keepalive_if_required()
        self._rest()
        self.handle_events()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, "bad_request", msg)

    # --- called by the application ----------------------------------------------------------------

    def logged_in(self, user: str) -> bool:
        """Note that the request has a right login; False if the user has too many connections."""
        self._is_logged_in = True
        self._deadline = monotonic() + self._connections.idle_seconds
        return self._connections.logged_in(self.number, user)

    @property
    def gone(self) -> bool:
        """Whether the client reads no more of what is answered."""
        return self._ended or self.transport.is_closing()

    # --- called by the connections of the port ----------------------------------------------------

    def is_in_the_way(self) -> bool:
        """True if it waits for its client, or for an answer with more requests behind it."""
        if self.transport is None or self._is_waiting() or self.flow.write_paused:
            return True
        return not self._is_logged_in and bool(self._input)

    def check(self, now: float) -> None:
        """End it if its client had its time."""
        if self.transport is None:
            if now >= self._deadline:
                self.cut()
            return
        unsent = self.transport.get_write_buffer_size()
        # A client that takes a little has its time anew: only one that takes nothing is cut.
        if unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        logged_in, limits = self._is_logged_in, self._connections
        if unsent and now - self._unsent_since >= (
            limits.idle_seconds if logged_in else limits.request_seconds
        ):
            self._say("does not read its answer")
            self.cut()
        elif now >= self._deadline and (self._is_waiting() or self._ended):
            if self.transport.is_closing() or self._ended:
                self.cut()
            # An idle client has done nothing wrong: its connection is closed without a line in the
            # log.
            elif self.conn.their_state is h11.IDLE and not self._input:
                self.transport.close()
            else:
                seconds = limits.idle_seconds if logged_in else limits.request_seconds
                self._say(f"has sent no whole request within {seconds:g} s")
                self.cut()

    def cut(self) -> None:
        """End it at once."""
        self._ended = True
        self._deadline = 0.0
        if self.transport is not None:
            self.transport.abort()
        elif self._sock is not None:
            cut(self._sock)

    # --- private ----------------------------------------------------------------------------------

    def _is_waiting(self) -> bool:
        """True if the broker has nothing to do before the client sends more."""
        if self.cycle is None or self.cycle.response_complete:
            return True
        return self.conn.their_state is h11.SEND_BODY and self._room() > 0

    def _room(self) -> int:
        """Return how much more may be kept of a body; what is not wanted any more is not kept."""
        if self.cycle.response_complete:
            return HTTP_HEAD_BYTES
        # Before the login only little of a body is kept: anybody can send one.
        limit = HIGH_WATER_LIMIT if self._is_logged_in else HTTP_EARLY_BODY_BYTES
        return limit - len(self.cycle.body)

    def _rest(self) -> None:
        """Give the client more time between two requests than within one."""
        if self.conn.their_state is h11.IDLE and not self._input and self.cycle is not None:
            self._between = True
            self._deadline = monotonic() + self._connections.idle_seconds

    def _say(self, text: str) -> None:
        self._connections.report("info", f"HTTP: {self._address} {text}: its connection is closed")

    def _go_on(self) -> None:
        self._waits = False
        if self._ended or self.transport.is_closing():
            return
        piece = self._piece()
        if piece:
            if self._is_logged_in:
                self._deadline = monotonic() + self._connections.idle_seconds
            try:
                self.conn.receive_data(piece)
                super().handle_events()
                if self.cycle is not None:
                    self.cycle.transport = self._answers
            # What the broker would send does not fit the state of the connection: it cannot go on,
            # even to say so.
            except h11.LocalProtocolError:
                self.cut()
                return
            if self._input:
                self.handle_events()
            elif self.cycle is not None and self.cycle.response_complete and not self._between:
                self._rest()
        self._adjust_reading()

    def _adjust_reading(self) -> None:
        """Read while there is room."""
        if self.transport.is_closing():
            return
        has_room = len(self._input) < HTTP_HEAD_BYTES
        if has_room and not self.transport.is_reading():
            self.transport.resume_reading()
        elif not has_room and self.transport.is_reading():
            self.transport.pause_reading()

    def _piece(self) -> bytes:
        """Take what may be parsed now from the input; b"" for nothing."""
        state = self.conn.their_state
        if state is h11.IDLE:
            self._take_back()
            return self._head() if self._input else b""
        if not self._input:
            return b""
        if state is not h11.SEND_BODY:
            if state is not h11.DONE:
                # After "connection: close" nothing counts.
                self._input.clear()
            return b""
        many = self._input.count(b"\n") > HTTP_PIECE_LINES
        return self._taken(min(self._room(), HTTP_PIECE_BYTES if many else len(self._input)))

    def _take_back(self) -> None:
        """Take back what the parser has got behind the end of a body."""
        behind, _ = self.conn.trailing_data
        if behind:
            self._input[:0] = behind
            self.conn = h11.Connection(h11.SERVER, HTTP_HEAD_BYTES)

    def _head(self) -> bytes:
        """Take the head of a request if all of it is there."""
        while self._input.startswith((b"\r", b"\n")):
            del self._input[:1]  # RFC 9112 2.2: an empty line before a request is ignored
        if not self._input:
            return b""
        # No request, perhaps a TLS ClientHello (0x16): the parser refuses it now, instead of
        # waiting for an empty line that never comes.
        if self._input[0] < _FIRST_PRINTABLE:
            return self._taken(len(self._input))
        end = _HEAD_END.search(self._input, self._searched)
        if end is None:
            # An end of up to three octets may be cut in two: the next search begins before it. What
            # was searched is not searched again with each octet that comes.
            self._searched = max(0, len(self._input) - 3)
            if len(self._input) >= HTTP_HEAD_BYTES:
                self._refuse_head()
            return b""
        head = self._taken(end.end())
        if head.count(b"\n") > HTTP_HEAD_LINES:
            self._refuse_head()
        # RFC 9112 6.1 lets a server refuse both. A proxy before it may believe the other one, and
        # then takes the rest of the body for another client's request.
        elif all(each.search(head) for each in _FRAMED):
            text = "a request has content-length or transfer-encoding, not both"
            self._refuse(400, "bad_request", text)
        else:
            return head
        return b""

    def _refuse_head(self) -> None:
        text = (
            f"the request line and the header fields have more than {HTTP_HEAD_BYTES} bytes or "
            f"{HTTP_HEAD_LINES} lines"
        )
        self._refuse(431, "header_fields_too_large", text)

    def _taken(self, size: int) -> bytes:
        piece = bytes(self._input[:size]) if size > 0 else b""
        del self._input[: max(0, size)]
        self._searched = 0
        return piece

    def _refuse(self, status: int, error: str, reason: str) -> None:
        """Answer what cannot be parsed, and close the connection when the client has read it."""
        self._say(f"is refused: {reason}")
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE, h11.ERROR):
            self.cut()  # the answer to another request is under way
            return
        body = msgspec.json.encode({"error": error, "reason": reason})
        self.transport.write(
            b"HTTP/1.1 %d Refused\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (status, len(body), body)
        )
        self._ended = True
        self._input.clear()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._deadline = monotonic() + HTTP_LINGER_SECONDS
        self._drop_rest()

    def _close(self) -> None:
        """Close the connection after its last answer, which a client has read that still sends."""
        if self.conn.their_state is not h11.SEND_BODY:
            self.transport.close()
            return
        self._ended = True
        self._input.clear()
        self._drop_rest()

    def _drop_rest(self) -> None:
        """Close this direction alone, and drop what comes until the deadline.

        Closing a socket with unread input resets it, and the client may lose the answer (RFC 9112
        9.6).
        """
        self._adjust_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()


class Reading(asyncio.BufferedProtocol):
    """Reads for a connection: a transport reads 256 KiB at once for any other protocol.

    Args:
        connection: gets what is read.
    """

    def __init__(self, connection: GuardedConnection) -> None:
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass on the transport."""
        self._connection.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on the end."""
        self._connection.connection_lost(exc)

    def eof_received(self) -> None:
        """Let the transport close."""

    def pause_writing(self) -> None:
        """Let the application wait."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Let the application go on."""
        self._connection.resume_writing()

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Return where the next bytes are read to."""
        return self._connection.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what was read."""
        self._connection.read(nbytes)
