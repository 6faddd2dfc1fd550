"""The client side of final 0-10 without I/O; `protocol.core` documents the interface of a shell.

    client                                    broker
      |  protocol header "AMQP" 1 1 0 10  ------>  |     AMQP 0-10 4.3
      |  <-------------------------  the same      |
      |  <-------------------------------  start   |
      |  start-ok (mechanism, response)  ------->  |
      |  <--------------------------------  tune   |
      |  tune-ok, open (vhost)  ---------------->  |
      |  <-----------------------------  open-ok   |

After that there are sessions, one per channel: `session.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.errors import ProtocolError
from harebell.base.limits import BODY_HARD_MAX_BYTES, CHANNEL_MAX, SEGMENT_FRAME_BYTES
from harebell.base.message import Message, Properties
from harebell.base.version import VERSION
from harebell.client.errors import (
    AuthenticationFailed,
    ProtocolMismatch,
)
from harebell.client.protocol.call import Call
from harebell.client.protocol.life import ConnectionPhase, Life
from harebell.client.protocol.v010.session import CoreSession
from harebell.client.protocol.v09 import handshake
from harebell.client.url import PLAIN, URL
from harebell.kernels.segments import (
    BODY,
    COMMAND,
    CONTROL,
    FIRST_SEGMENT,
    HEADER,
    LAST_FRAME,
    LAST_SEGMENT,
    REDELIVERED,
    SegmentScanner,
    SegmentSink,
)
from harebell.kernels.transfers import SegmentBuffer
from harebell.wire.v010 import controls
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.commands import MessageTransfer
from harebell.wire.v010.composites import Command, Control

PROTOCOL_HEADER = b"AMQP\x01\x01\x00\x0a"
_HEADER = 8
_REFUSED = 320
_SESSION_CLASS = 2


class _Assembly:
    """The segments of a command that have arrived, and how many are missing."""

    __slots__ = ("body", "command", "header", "size")

    def __init__(self) -> None:
        self.command = b""
        self.header = b""
        self.body: list[bytes] = []
        self.size = 0


def _heartbeat() -> bytes:
    buffer = SegmentBuffer()
    payload = AMQP_0_10.encode(controls.ConnectionHeartbeat())
    buffer.segments(CONTROL, 0, payload, SEGMENT_FRAME_BYTES)
    return buffer.take()


class CoreConnection010(Life[CoreSession], SegmentSink):
    """The protocol state of one connection; arguments and attributes as of `Life`.

    Args:
        nonce: makes the names of our sessions unique.
    """

    heartbeat_frame = _heartbeat()
    out: SegmentBuffer
    scanner: SegmentScanner

    def __init__(
        self, url: URL, now: float, properties: dict[str, Any] | None = None, nonce: str = ""
    ) -> None:
        super().__init__(url, now, properties)
        self.out = SegmentBuffer()
        self.frame_max = SEGMENT_FRAME_BYTES
        self.scanner = SegmentScanner(self)
        self.scanner.frame_max = SEGMENT_FRAME_BYTES
        self._nonce = nonce
        self._sessions = 0
        self._greeting = b""
        self._assemblies: dict[int, _Assembly] = {}
        self.out.raw(PROTOCOL_HEADER)

    def _read(self, data: bytes | bytearray | memoryview) -> None:
        if len(self._greeting) < _HEADER:
            data = self._greeted(bytes(data))
        self.scanner.feed(bytes(data))

    def _greeted(self, data: bytes) -> bytes:
        """Consume the broker's protocol header; return the remaining bytes."""
        greeting = self._greeting + data
        self._greeting = greeting[:_HEADER]
        if len(greeting) < _HEADER and PROTOCOL_HEADER.startswith(greeting):
            return b""
        if self._greeting != PROTOCOL_HEADER:
            if greeting[:1] == b"A":
                handshake.check_greeting(self.url, greeting)
            raise ProtocolMismatch(
                f"the server at {self.url.address} does not speak AMQP 0-10; it answered "
                f"{greeting[:16]!r}"
            )
        return greeting[_HEADER:]

    # --- verbs ----------------------------------------------------------------------------------

    def open_channel(
        self, number: int | None = None, *, confirms: bool | None = None, keep: bool = False
    ) -> Call[Any]:
        """Open a session, like `CoreConnection.open_channel`. Every publish can be confirmed."""
        self.check_open()
        number = self._free_number(number)
        self._sessions += 1
        name = f"{self._nonce}.{self._sessions}".encode()
        session = CoreSession(self, number, name, confirms=confirms is not False, keep=keep)
        self.channels[number] = session
        return session.open()

    def forget(self, number: int) -> None:
        """Free the number of the channel."""
        super().forget(number)
        if self._assemblies.pop(number, None) is not None:
            self.scanner.pending -= 1

    # --- output ---------------------------------------------------------------------------------

    def send_control(self, channel: int, control: Control) -> None:
        """Append a control to the output."""
        self.out.segments(CONTROL, channel, AMQP_0_10.encode(control), self.frame_max)

    def send_command(self, channel: int, command: Command, sync: bool) -> None:
        """Append a command without content to the output."""
        self.out.segments(COMMAND, channel, AMQP_0_10.encode(command, sync), self.frame_max)

    def send_transfer(
        self, channel: int, command: MessageTransfer, message: Message, sync: bool
    ) -> None:
        """Append a message to the output."""
        data = AMQP_0_10.encode(command, sync)
        self.out.transfer(channel, data, False, message, self.frame_max)

    def _say_close(self, code: int, text: str) -> None:
        self.send_control(0, controls.ConnectionClose(reply_code=code, reply_text=text))

    # --- callbacks of the scanner ---------------------------------------------------------------

    def frame(self, flags: int, kind: int, track: int, channel: int, payload: bytes) -> int:
        """Handle one frame."""
        if kind == CONTROL:
            self._on_control(channel, AMQP_0_10.decode_control(payload))
            return 0
        if self.state is not ConnectionPhase.OPEN:
            if self.state is ConnectionPhase.CLOSING:
                return 0
            raise ProtocolError(503, "a session was used before the connection was open")
        assembly = self._assembly(channel, bool(flags & FIRST_SEGMENT))
        assembly.size += len(payload)
        if assembly.size > BODY_HARD_MAX_BYTES:
            raise ProtocolError(501, f"a message of more than {BODY_HARD_MAX_BYTES} octets came")
        if kind == COMMAND:
            assembly.command += payload
        elif kind == HEADER:
            assembly.header += payload
        elif kind == BODY:
            assembly.body.append(payload)
        if flags & LAST_SEGMENT and flags & LAST_FRAME:
            del self._assemblies[channel]
            self.scanner.pending -= 1
            _, command = AMQP_0_10.decode_command(assembly.command)
            session = self.channels.get(channel)
            if session is not None:
                session.command(command, assembly.header, b"".join(assembly.body))
        return 0

    def _assembly(self, channel: int, first: bool) -> _Assembly:
        assembly = self._assemblies.get(channel)
        if assembly is None:
            if not first:
                raise ProtocolError(501, "a command began in its middle")
            assembly = self._assemblies[channel] = _Assembly()
            self.scanner.pending += 1
        return assembly

    def transfer(
        self,
        channel: int,
        flags: int,
        destination: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> int:
        """Handle a whole message."""
        session = self.channels.get(channel)
        if session is not None and self.state is ConnectionPhase.OPEN:
            session.transfer(destination, bool(flags & REDELIVERED), properties, body)
        return 0

    def _on_control(self, channel: int, control: Control) -> None:
        handler = _HANDLERS.get((self.state, type(control)))
        if handler is not None:
            handler(self, control)
        elif AMQP_0_10.spec_of(control).class_code == _SESSION_CLASS:
            session = self.channels.get(channel)
            if session is not None:
                session.control(control)
        elif self.state is not ConnectionPhase.CLOSING and not isinstance(
            control, controls.ConnectionHeartbeat
        ):
            raise ProtocolError(503, f"{control.NAME} came in state {self.state.value}")

    def handle_start(self, control: controls.ConnectionStart) -> None:
        self.server_properties = control.server_properties
        offered = " ".join(str(name) for name in control.mechanisms)
        if self.url.auth_mechanism not in (None, PLAIN):
            raise AuthenticationFailed(f"AMQP 0-10 has no mechanism {self.url.auth_mechanism}")
        if PLAIN not in offered.split():
            raise AuthenticationFailed(
                f"the broker at {self.url.address} offers the SASL mechanisms {offered!r}, "
                f"this client would use {PLAIN}"
            )
        properties = handshake.client_properties(self.url, VERSION, self._properties)
        del properties["capabilities"]
        self.send_control(
            0,
            controls.ConnectionStartOk(
                client_properties=properties,
                mechanism=PLAIN,
                response=handshake.sasl_response(PLAIN, self.url),
                locale=handshake.LOCALE,
            ),
        )
        self.state = ConnectionPhase.TUNING

    def handle_tune(self, control: controls.ConnectionTune) -> None:
        size = control.max_frame_size or SEGMENT_FRAME_BYTES
        self.frame_max = min(self.url.frame_max or SEGMENT_FRAME_BYTES, size)
        self.channel_max = min(
            self.url.channel_max or CHANNEL_MAX, control.channel_max or CHANNEL_MAX
        )
        self.heartbeat = control.heartbeat_max or 0
        if self.url.heartbeat is not None:
            self.heartbeat = min(self.url.heartbeat, self.heartbeat)
        self.send_control(
            0,
            controls.ConnectionTuneOk(
                channel_max=self.channel_max,
                max_frame_size=self.frame_max,
                heartbeat=self.heartbeat,
            ),
        )
        self.send_control(0, controls.ConnectionOpen(virtual_host=self.url.vhost))
        self._begin_beating()
        self.state = ConnectionPhase.OPENING

    def handle_close(self, control: controls.ConnectionClose) -> None:
        self.send_control(0, controls.ConnectionCloseOk())
        self._finish_as(_REFUSED, control.reply_code, control.reply_text or "")


_HANDLERS: dict[tuple[ConnectionPhase, type[Control]], Callable[[CoreConnection010, Any], None]] = {
    **{
        (state, controls.ConnectionClose): CoreConnection010.handle_close
        for state in ConnectionPhase
        if state is not ConnectionPhase.CLOSED
    },
    (ConnectionPhase.STARTING, controls.ConnectionStart): CoreConnection010.handle_start,
    (ConnectionPhase.TUNING, controls.ConnectionSecure): CoreConnection010.handle_secure,
    (ConnectionPhase.TUNING, controls.ConnectionTune): CoreConnection010.handle_tune,
    (ConnectionPhase.OPENING, controls.ConnectionOpenOk): CoreConnection010.handle_open_ok,
    (ConnectionPhase.CLOSING, controls.ConnectionCloseOk): CoreConnection010.handle_close_ok,
}
