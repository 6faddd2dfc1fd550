"""The client side of AMQP 0-8 to 0-9-1 without I/O: bytes and time in, bytes and answers out.

    shell                               core
    data read        -> receive(data, now)      -> callbacks, calls settled
    take_output()    <- bytes to write
    a timer          -> tick(now)               -> heartbeats, timeouts
    end of input     -> eof()
    `finished`       <- write the rest, close the socket

`aio` and `blocking` are the two shells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.errors import ProtocolError
from harebell.base.limits import FRAME_MAX_BYTES, FRAME_MIN_BYTES
from harebell.base.message import Properties
from harebell.base.version import VERSION
from harebell.client.errors import (
    AMQPError,
    AuthenticationFailed,
    ConnectionFailed,
    ExtensionMissing,
    UnsupportedByVersion,
)
from harebell.client.protocol.call import Call
from harebell.client.protocol.life import ConnectionPhase, Life
from harebell.client.protocol.v09 import handshake
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.v09.dialect import TRANSITIONAL, dialect_of
from harebell.client.protocol.v09.transitional_channel import TransitionalChannel
from harebell.client.url import FINAL, LAST, URL
from harebell.wire.v09 import extensions
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import HEARTBEAT, METHOD, FrameScanner, FrameSink, OutBuffer
from harebell.wire.v09.reply_codes import reply_text

if TYPE_CHECKING:
    from harebell.wire.v09.methods_older import ConnectionRedirect

_ACCESS_REFUSED = 403
_OPEN = ConnectionPhase.OPEN


class CoreConnection(Life[CoreChannel], FrameSink):
    """The protocol state of one connection; arguments and attributes as of `Life`."""

    out: OutBuffer
    scanner: FrameScanner
    heartbeat_frame = b"\x08\x00\x00\x00\x00\x00\x00\xce"

    def __init__(self, url: URL, now: float, properties: dict[str, Any] | None = None) -> None:
        super().__init__(url, now, properties)
        self.dialect = dialect_of(url.version)
        self.out = OutBuffer()
        self.frame_max = FRAME_MIN_BYTES
        self.scanner = FrameScanner(self)
        self.scanner.client = True
        # A broker's connection.start may be longer than AMQP's minimal frame: accept it.
        self.scanner.frame_max = FRAME_MAX_BYTES
        self._greeted = False
        self._credentials_sent = False
        self.out.raw(self.dialect.header)

    def _read(self, data: bytes | bytearray | memoryview) -> None:
        if not self._greeted:
            handshake.check_greeting(self.url, bytes(data[:16]))
            self._greeted = True
        self.scanner.feed(data)

    def _hung_up(self, reason: str) -> AMQPError:
        where = self.url.address
        if self.state is ConnectionPhase.TUNING and self._credentials_sent:
            # Brokers that cannot send the reason of a refused login hang up (RabbitMQ before 3.2).
            return AuthenticationFailed(
                f"the broker at {where} hung up after it saw the user and password",
                answered=False,
            )
        if self.state is ConnectionPhase.OPENING:
            return ConnectionFailed(
                f"{reason} while opening virtual host {self.url.vhost!r} ({where})"
            )
        hint = "" if self.url.tls else "; if it expects TLS, use amqps://"
        return ConnectionFailed(f"{reason} ({where}){hint}")

    # --- verbs ----------------------------------------------------------------------------------

    @property
    def extensions(self) -> dict[str, int]:
        """Harebell's protocol extensions that the broker supports, and their versions."""
        return extensions.announced(self.server_properties)

    def check_extension(self, name: str) -> None:
        """Raise `ExtensionMissing` if the broker does not support a protocol extension.

        Raises:
            UnsupportedByVersion: the version of AMQP has no extensions.
        """
        self.check_open()
        if self.dialect.version != "0-9-1":
            raise UnsupportedByVersion(self.dialect.version, f"class {name}")
        ours, theirs = extensions.VERSIONS[name], self.extensions.get(name)
        if theirs != ours:
            product = str(self.server_properties.get("product", "of an unknown make"))
            raise ExtensionMissing(name, self.url.address, product, ours, theirs)

    def open_channel(
        self, number: int | None = None, *, confirms: bool | None = None, keep: bool = False
    ) -> Call[CoreChannel]:
        """Open a channel.

        Args:
            number: its number; None uses the lowest free one.
            confirms: whether its publishes are confirmed; None if the version has confirms.
            keep: whether unconfirmed messages are kept to be sent again.

        Raises:
            ClientClosed: every channel that the broker allows is in use.
            UnsupportedByVersion: confirms are required and the version has none.
        """
        self.check_open()
        if confirms is None:
            confirms = self.dialect.confirms
        elif confirms and not self.dialect.confirms:
            raise UnsupportedByVersion(self.dialect.version, "publisher confirms")
        number = self._free_number(number)
        kind = TransitionalChannel if self.dialect.version == TRANSITIONAL else CoreChannel
        channel = kind(self, number, confirms=confirms, keep=keep)
        self.channels[number] = channel
        return channel.open()

    # --- callbacks of the scanner ---------------------------------------------------------------

    def frame(self, kind: int, channel: int, payload: bytes) -> int:
        """Handle one frame."""
        if channel == 0:
            if kind == METHOD:
                self._on_method(self.dialect.spec.decode(payload))
            elif kind != HEARTBEAT:
                raise ProtocolError(505, f"a frame of type {kind} came on channel 0")
        elif self.state is _OPEN:
            self._channel(channel).frame(kind, payload)
        elif self.state is not ConnectionPhase.CLOSING:
            raise ProtocolError(503, "a channel was used before the connection was open")
        return 0

    def deliver(
        self,
        channel: int,
        consumer_tag: str,
        tag: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> int:
        """Handle a whole delivery."""
        if self.state is _OPEN:
            self._channel(channel).deliver(
                consumer_tag, tag, redelivered, exchange, routing_key, properties, body
            )
        return 0

    def ack(self, channel: int, tag: int, multiple: bool) -> int:
        """Handle a confirm."""
        if self.state is _OPEN:
            self._channel(channel).confirms.settle(tag, multiple, taken=True)
        return 0

    def _channel(self, number: int) -> CoreChannel:
        channel = self.channels.get(number)
        if channel is None:
            raise ProtocolError(504, f"a frame came on channel {number}, which is not open")
        return channel

    def _on_method(self, method: m.Method) -> None:
        handler = _HANDLERS.get((self.state, method.NAME))
        if handler is not None:
            handler(self, method)
        elif self.state is not ConnectionPhase.CLOSING:
            raise ProtocolError(503, f"{method.NAME} came in state {self.state.value}")

    def handle_start(self, method: m.ConnectionStart) -> None:
        announced = (method.version_major, method.version_minor)
        handshake.check_version(self.url, announced, self.dialect.announced)
        self.server_properties = method.server_properties
        mechanism = handshake.choose_mechanism(self.url, _words(method.mechanisms))
        properties = handshake.client_properties(self.url, VERSION, self._properties)
        if not self.dialect.capabilities:
            del properties["capabilities"]
        properties = self.dialect.introduced(properties)
        self._send(
            m.ConnectionStartOk(
                client_properties=properties,
                mechanism=mechanism,
                response=handshake.sasl_response(mechanism, self.url),
                locale=handshake.LOCALE,
            )
        )
        self._credentials_sent = True
        self.state = ConnectionPhase.TUNING

    def handle_tune(self, method: m.ConnectionTune) -> None:
        limits = handshake.negotiate(
            self.url, method.channel_max, method.frame_max, method.heartbeat
        )
        self.channel_max = limits.channel_max
        self.frame_max = self.scanner.frame_max = limits.frame_max
        self.heartbeat = limits.heartbeat
        self._send(
            m.ConnectionTuneOk(
                channel_max=limits.channel_max,
                frame_max=limits.frame_max,
                heartbeat=limits.heartbeat,
            )
        )
        self._send(m.ConnectionOpen(virtual_host=self.url.vhost))
        self._begin_beating()
        self.state = ConnectionPhase.OPENING

    def handle_redirect(self, method: ConnectionRedirect) -> None:
        where = f"sends its clients to {method.host}: connect there"
        self._finish(ConnectionFailed(f"the broker at {self.url.address} {where}"))

    def handle_close(self, method: m.ConnectionClose) -> None:
        self._send(m.ConnectionCloseOk())
        self._finish_as(
            _ACCESS_REFUSED,
            method.reply_code,
            method.reply_text,
            method.class_id,
            method.method_id,
        )

    def handle_blocked(self, method: m.ConnectionBlocked) -> None:
        self._set_blocked(method.reason)

    def handle_unblocked(self, method: m.ConnectionUnblocked) -> None:
        self._set_blocked(None)

    def _set_blocked(self, reason: str | None) -> None:
        self.blocked = reason
        if self.on_blocked is not None:
            self.on_blocked(reason)

    # --- the end --------------------------------------------------------------------------------

    def _send(self, method: m.Method) -> None:
        self.out.frame(METHOD, 0, self.dialect.encode(method))

    def _say_close(self, code: int, text: str) -> None:
        self._send(m.ConnectionClose(reply_code=code, reply_text=text))

    def _refuse(self, error: ProtocolError) -> None:
        """Close after a protocol error of the broker (AMQP 0-9-1 4.2.3)."""
        if self.state in (ConnectionPhase.OPENING, ConnectionPhase.OPEN):
            self._send(
                m.ConnectionClose(
                    reply_code=error.code,
                    reply_text=reply_text(error.code, error.text),
                    class_id=error.class_id,
                    method_id=error.method_id,
                )
            )
        super()._refuse(error)


def _words(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


_Handler = Callable[[CoreConnection, Any], None]
_CLOSE: dict[tuple[ConnectionPhase, str], _Handler] = {
    (state, "connection.close"): CoreConnection.handle_close
    for state in ConnectionPhase
    if state is not ConnectionPhase.CLOSED
}
# By name: connection.redirect, which 0-9-1 lacks, has a type only once an older version is loaded.
_HANDLERS: dict[tuple[ConnectionPhase, str], _Handler] = {
    **_CLOSE,
    (ConnectionPhase.STARTING, "connection.start"): CoreConnection.handle_start,
    (ConnectionPhase.TUNING, "connection.secure"): CoreConnection.handle_secure,
    (ConnectionPhase.TUNING, "connection.tune"): CoreConnection.handle_tune,
    (ConnectionPhase.OPENING, "connection.open-ok"): CoreConnection.handle_open_ok,
    (ConnectionPhase.OPENING, "connection.redirect"): CoreConnection.handle_redirect,
    (ConnectionPhase.OPEN, "connection.blocked"): CoreConnection.handle_blocked,
    (ConnectionPhase.OPEN, "connection.unblocked"): CoreConnection.handle_unblocked,
    (ConnectionPhase.CLOSING, "connection.close-ok"): CoreConnection.handle_close_ok,
}

_NONCE_MAX = 1 << 53


class Random(Protocol):
    """The source of randomness of a client; `random.Random` is one."""

    def random(self) -> float:
        """Return a number from 0 up to 1."""


def new_core(url: URL, now: float, properties: dict[str, Any], rng: Random) -> CoreConnection:
    """Return the protocol state of a new connection.

    Args:
        url: the address, with user and version.
        now: the time, in seconds.
        properties: added to the client properties.
        rng: randomness for the names of sessions and containers.
    """
    if url.version not in (FINAL, LAST):
        return CoreConnection(url, now, properties)
    nonce = f"harebell-{int(rng.random() * _NONCE_MAX):014x}"
    # Imported on demand: their codecs load slowly, and most programs never use them.
    # They have the verbs and attributes of CoreConnection, over other frames.
    core: Any
    if url.version == FINAL:
        from harebell.client.protocol.v010.core import CoreConnection010

        core = CoreConnection010(url, now, properties, nonce)
    else:
        from harebell.client.protocol.v1.core import CoreConnection1

        core = CoreConnection1(url, now, properties, nonce)
    other: CoreConnection = core
    return other
