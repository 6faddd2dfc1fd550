"""The client side of AMQP 1.0 without I/O; `protocol.core` documents the interface of a shell.

    client                                         broker
      |  protocol header "AMQP" 3 1 0 0  -------->  |     AMQP 1.0 5.3
      |  <-----------  the same, sasl-mechanisms    |
      |  sasl-init (mechanism, response)  ------->  |
      |  <----------------------------  outcome     |
      |  protocol header "AMQP" 0 1 0 0, open  -->  |     AMQP 1.0 2.4.1
      |  <----------------------  the same, open    |

After that there are sessions, one per channel: `session`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.errors import ConditionError, ProtocolError
from harebell.base.limits import CHANNEL_MAX, CLOSE_TIMEOUT_SECONDS, FRAME_MAX_BYTES
from harebell.base.message import Properties
from harebell.base.version import VERSION
from harebell.client.errors import (
    AMQPError,
    AuthenticationFailed,
    ConnectionFailed,
    ProtocolMismatch,
)
from harebell.client.limits import IDLE_SECONDS
from harebell.client.protocol.call import Call
from harebell.client.protocol.life import ConnectionPhase, Life
from harebell.client.protocol.v09 import handshake
from harebell.client.protocol.v1.addresses import Addresses, AddressesV2, addresses_of
from harebell.client.protocol.v1.conditions import ended_connection
from harebell.client.protocol.v1.endpoint import Endpoint
from harebell.client.protocol.v1.frames import AMQP_HEADER, SASL_HEADER, LoginScanner
from harebell.client.protocol.v1.session import CoreSession1
from harebell.client.url import URL
from harebell.kernels.performatives import ACCEPTED, MODIFIED, REJECTED, RELEASED, SETTLED
from harebell.wire.v09.frames import OutBuffer
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import (
    EMPTY,
    SASL,
    PerformativeScanner,
    PerformativeSink,
    encode_frame,
)
from harebell.wire.v1.performatives import decode_performative, encode_composite
from harebell.wire.v1.values import Symbol

_MILLISECONDS = 1000
_FAILED_TO_OPEN = "amqp:connection-establishment-failed"
_OUTCOMES = {1: "the user or the password is wrong", 2: "a system error", 3: "a system error",
             4: "a system error that may pass"}  # fmt: skip

_OVER = (ConnectionPhase.CLOSING, ConnectionPhase.CLOSED)
_PLAIN_OUTCOMES = {
    ACCEPTED: c.Accepted(),
    REJECTED: c.Rejected(),
    RELEASED: c.Released(),
    MODIFIED: c.Modified(),
}


class CoreConnection1(Life[CoreSession1], PerformativeSink):
    """The protocol state of one connection; arguments and attributes as of `Life`.

    Args:
        container: our container-id, unique for the program.
    """

    heartbeat_frame = EMPTY
    out: OutBuffer
    scanner: PerformativeScanner

    def __init__(
        self, url: URL, now: float, properties: dict[str, Any] | None = None, container: str = ""
    ) -> None:
        super().__init__(url, now, properties)
        self.container = container
        self.out = OutBuffer()
        self.frame_max = url.frame_max or FRAME_MAX_BYTES
        self.scanner = PerformativeScanner(self)
        self._login: LoginScanner | None = LoginScanner(self)
        self._addresses: Addresses = AddressesV2()
        self._expected = SASL_HEADER
        self._remote: dict[int, CoreSession1] = {}
        self._closes_when_sent = False
        self.out.raw(SASL_HEADER)

    def _read(self, data: bytes | bytearray | memoryview) -> None:
        try:
            rest: bytes | None = bytes(data)
            if self._login is not None:
                rest = self._login.feed(bytes(data))
                if rest is None:
                    return
                self._login = None
            if rest and self.state is not ConnectionPhase.CLOSED:
                self.scanner.feed(rest)
        except ConditionError as error:
            raise ProtocolError(501, f"{error.condition} - {error.text}") from None

    def _hung_up(self, reason: str) -> AMQPError:
        where = self.url.address
        if self.state is ConnectionPhase.OPENING:
            return ConnectionFailed(
                f"{reason} while opening virtual host {self.url.vhost!r} ({where})"
            )
        return super()._hung_up(reason)

    # --- verbs ----------------------------------------------------------------------------------

    def open_channel(
        self, number: int | None = None, *, confirms: bool | None = None, keep: bool = False
    ) -> Call[Any]:
        """Open a session, like `CoreConnection.open_channel`. Every publish can be confirmed."""
        self.check_open()
        number = self._free_number(number)
        session = CoreSession1(
            self, number, confirms=confirms is not False, keep=keep, addresses=self._addresses
        )
        self.channels[number] = session
        return session.open()

    def close(self, now: float, code: int = 200, text: str = "bye") -> Call[None]:
        """Close the connection gracefully, when what was published without confirms is sent."""
        if self.state is ConnectionPhase.OPEN and self._sends:
            self._closes_when_sent = True
            self._deadline = now + CLOSE_TIMEOUT_SECONDS
            return self.closed
        self._closes_when_sent = False
        return super().close(now, code, text)

    @property
    def _sends(self) -> bool:
        return self.blocked is None and any(session.sends for session in self.channels.values())

    def all_sent(self) -> None:
        """Go on with the close: nothing of a session waits for credit any more."""
        if self._closes_when_sent and not self._sends:
            self.close(self.last_received)

    def _timed_out(self) -> None:
        if self._closes_when_sent:
            self._closes_when_sent = False
            super().close(self.last_received)
        else:
            super()._timed_out()

    def _close_channels(self, error: AMQPError) -> None:
        self._remote.clear()
        super()._close_channels(error)

    # --- output ---------------------------------------------------------------------------------

    def send(self, channel: int, performative: Any) -> None:
        """Append a performative to the output."""
        self.out.raw(encode_frame(encode_composite(performative), channel))

    def send_raw(self, data: bytes) -> None:
        """Append a whole frame to the output."""
        self.out.raw(data)

    def _say_close(self, code: int, text: str) -> None:
        self.send(0, c.Close())

    def _refuse(self, error: ProtocolError) -> None:
        """Close after a protocol error of the broker."""
        if self.state is ConnectionPhase.OPEN:
            condition = Symbol("amqp:connection:framing-error")
            self.send(0, c.Close(error=c.Error(condition=condition, description=error.text)))
        super()._refuse(error)

    # --- callbacks of the scanner ---------------------------------------------------------------

    def greeting(self, header: bytes) -> bool:
        """Handle a protocol header of the broker; True if it is the last one.

        Raises:
            ProtocolMismatch: it is another one.
        """
        if header == self._expected:
            return header == AMQP_HEADER
        handshake.check_greeting(self.url, header)
        raise ProtocolMismatch(
            f"the server at {self.url.address} does not speak AMQP 1.0; it answered {header!r}"
        )

    def frame(self, channel: int, kind: int, body: bytes) -> int:
        """Handle one frame."""
        if not body:
            return 0
        performative, end = decode_performative(body)
        handler = _HANDLERS.get((self.state, type(performative)))
        if handler is not None:
            handler(self, performative)
        elif self.state is ConnectionPhase.OPEN and kind != SASL:
            session = self._session(channel, performative)
            session.endpoint.receive(performative, body[end:])
        elif self.state not in _OVER:
            raise ProtocolError(503, f"{performative.NAME} came in state {self.state.value}")
        return 0

    def transfer(
        self,
        channel: int,
        handle: int,
        delivery_id: int,
        tag: bytes | None,
        message_format: int,
        flags: int,
        properties: Properties,
        body: bytes,
    ) -> int:
        """Handle a whole message."""
        endpoint = self._endpoint(channel)
        if endpoint is not None:
            endpoint.delivered(handle, delivery_id, bool(flags & SETTLED), properties, body)
        return 0

    def partial(
        self,
        channel: int,
        handle: int,
        delivery_id: int,
        tag: bytes | None,
        message_format: int,
        flags: int,
        state: bytes,
        payload: bytes,
    ) -> int:
        """Handle a part of a message."""
        endpoint = self._endpoint(channel)
        if endpoint is not None:
            endpoint.part(handle, delivery_id, flags, payload)
        return 0

    def disposition(
        self,
        channel: int,
        role: bool,
        first: int,
        last: int,
        settled: bool,
        outcome: int,
        state: bytes,
    ) -> int:
        """Handle outcomes."""
        endpoint = self._endpoint(channel)
        if endpoint is not None:
            value = decode_performative(state)[0] if state else _PLAIN_OUTCOMES.get(outcome)
            endpoint.disposed(role, first, last, settled, value)
        return 0

    def flow(
        self,
        channel: int,
        next_incoming_id: int,
        incoming_window: int,
        next_outgoing_id: int,
        outgoing_window: int,
        handle: int,
        delivery_count: int,
        link_credit: int,
        available: int,
        flags: int,
    ) -> int:
        """Handle windows and credit."""
        endpoint = self._endpoint(channel)
        if endpoint is not None:
            endpoint.flowed(
                next_incoming_id, incoming_window, handle, delivery_count, link_credit, flags
            )
        return 0

    def _endpoint(self, channel: int) -> Endpoint | None:
        """Return the session of a channel of the broker; None when all are over."""
        if self.state is not ConnectionPhase.OPEN:
            return None
        session = self._remote.get(channel)
        if session is None:
            raise ProtocolError(504, f"a frame came on channel {channel}, which has no session")
        return session.endpoint

    def _session(self, channel: int, performative: Any) -> CoreSession1:
        """Return the session of a channel of the broker."""
        if isinstance(performative, c.Begin):
            ours = performative.remote_channel
            session = None if ours is None else self.channels.get(ours + 1)
            if session is None or session in self._remote.values():
                raise ProtocolError(504, "the broker began a session by itself")
            self._remote[channel] = session
            return session
        session = self._remote.get(channel)
        if session is None:
            raise ProtocolError(504, f"{performative.NAME} came on channel {channel}: no session")
        if isinstance(performative, c.End):
            del self._remote[channel]
        return session

    def handle_mechanisms(self, mechanisms: c.SaslMechanisms) -> None:
        offered = " ".join(mechanisms.sasl_server_mechanisms)
        mechanism = handshake.choose_mechanism(self.url, offered)
        init = c.SaslInit(
            mechanism=mechanism,
            initial_response=handshake.sasl_response(mechanism, self.url),
            hostname=self.url.host,
        )
        self.out.raw(encode_frame(encode_composite(init), 0, SASL))
        self.state = ConnectionPhase.TUNING

    def handle_challenge(self, challenge: c.SaslChallenge) -> None:
        self.handle_secure(challenge)

    def handle_outcome(self, outcome: c.SaslOutcome) -> None:
        if outcome.code:
            why = _OUTCOMES.get(outcome.code, "of an unknown kind")
            text = f"the broker refused the login: {why} (sasl-outcome {outcome.code})"
            self._finish(AuthenticationFailed(text, login=self.url.login))
            return
        self._expected = AMQP_HEADER
        self.scanner.frame_max = self.frame_max
        self.out.raw(AMQP_HEADER)
        seconds = IDLE_SECONDS if self.url.heartbeat is None else self.url.heartbeat
        properties = handshake.client_properties(self.url, VERSION, self._properties)
        del properties["capabilities"]
        self.send(
            0,
            c.Open(
                container_id=self.container,
                hostname=f"vhost:{self.url.vhost}",
                max_frame_size=self.frame_max,
                channel_max=(self.url.channel_max or CHANNEL_MAX) - 1,
                idle_time_out=seconds * _MILLISECONDS or None,
                properties={Symbol(name): value for name, value in properties.items()},
            ),
        )
        self.heartbeat = seconds
        self.state = ConnectionPhase.OPENING

    def handle_opened(self, opened: c.Open) -> None:
        self.server_properties = {str(k): v for k, v in (opened.properties or {}).items()}
        self._addresses = addresses_of(self.server_properties)
        self.frame_max = min(self.frame_max, opened.max_frame_size)
        self.channel_max = min(self.url.channel_max or CHANNEL_MAX, opened.channel_max + 1)
        wanted = (opened.idle_time_out or 0) / _MILLISECONDS
        self._begin_beating(min(wanted or self.heartbeat, self.heartbeat or wanted))
        if not self.server_properties.get(_FAILED_TO_OPEN):
            self.handle_open_ok(opened)

    def handle_close(self, close: c.Close) -> None:
        self.send(0, c.Close())
        self._finish(ended_connection(close.error))

    def handle_closed(self, close: c.Close) -> None:
        self._finish(None)

    def set_blocked(self, reason: str | None) -> None:
        """Note that the broker takes no messages now, or does again."""
        if reason != self.blocked:
            self.blocked = reason
            if self.on_blocked is not None:
                self.on_blocked(reason)


_HANDLERS: dict[tuple[ConnectionPhase, type], Callable[[CoreConnection1, Any], None]] = {
    (ConnectionPhase.STARTING, c.SaslMechanisms): CoreConnection1.handle_mechanisms,
    (ConnectionPhase.TUNING, c.SaslChallenge): CoreConnection1.handle_challenge,
    (ConnectionPhase.TUNING, c.SaslOutcome): CoreConnection1.handle_outcome,
    (ConnectionPhase.OPENING, c.Open): CoreConnection1.handle_opened,
    (ConnectionPhase.OPENING, c.Close): CoreConnection1.handle_close,
    (ConnectionPhase.OPEN, c.Close): CoreConnection1.handle_close,
    (ConnectionPhase.CLOSING, c.Close): CoreConnection1.handle_closed,
}
