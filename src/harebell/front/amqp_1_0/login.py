"""The SASL layer: mechanisms, init, challenges, outcome (AMQP 1.0 5.3).

A peer that begins with the header of AMQP alone is logged in as the anonymous user; without one it
is answered with the header of the SASL layer, and the socket is closed. Many clients of this
version log in as ANONYMOUS unless they are told otherwise. As in RabbitMQ 4 that is the user guest
with its first password, unless `anonymous_login_user` says otherwise.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from harebell.auth.sasl.anonymous import Anonymous
from harebell.auth.sasl.exchange import Context
from harebell.auth.sasl.exchanges import (
    USUAL,
    PlainExchange,
    all_offers,
    begin_exchange,
    begin_single,
)
from harebell.base.errors import FramingError
from harebell.front.amqp_1_0.connection_states import ConnectionEvent
from harebell.front.amqp_1_0.negotiation import NegotiationScanner, is_amqp
from harebell.front.common.event_exchange import authenticated
from harebell.front.common.handing_over import drop_repeated
from harebell.front.common.login import (
    LoginRefused,
    context_of,
    in_turn,
    note_refused,
    step,
    when_clear,
)
from harebell.wire import HEADER_1_0, HEADER_1_0_SASL
from harebell.wire.v09.states import ConnectionState
from harebell.wire.v1.composites import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from harebell.wire.v1.frames import SASL, PerformativeScanner, encode_frame
from harebell.wire.v1.performatives import decode_performative

if TYPE_CHECKING:
    from harebell.auth.sasl.exchange import Exchange
    from harebell.front.amqp_1_0.connection import Connection
    from harebell.front.common.connection_ports import Scanner
    from harebell.wire.v1.described_list import DescribedList

_GUEST = "guest"
_GUEST_RESPONSE = b"\0guest\0guest"
_OK = 0
_REFUSED = 1
_ACCESS_REFUSED = 403


def begin(connection: Connection) -> None:
    """Answer the protocol header: offer the mechanisms, or log the anonymous user in."""
    if not connection.sasl:
        _begin_without_layer(connection)
        return
    scanner = NegotiationScanner(partial(_take, connection), partial(_take_header, connection))
    scanner.frame_max = connection.settings.initial_frame_max
    connection.scanner = scanner
    connection.out.raw(HEADER_1_0_SASL)
    context = context_of(connection)
    # AMQPLAIN is no mechanism of this version, but RabbitMQ offers it all the same.
    names = all_offers(context)
    if Anonymous.NAME not in names and _guest_may(connection, context, names):
        names.append(Anonymous.NAME)
    _put(connection, _offer(tuple(names)))
    drop_repeated(connection)
    connection.state = ConnectionState.STARTING


@lru_cache(maxsize=16)
def _offer(mechanisms: tuple[str, ...]) -> bytes:
    """Return the frame with mechanisms: most connections are sent the same."""
    return _frame(SaslMechanisms(mechanisms))


def _begin_without_layer(connection: Connection) -> None:
    """Log in a peer without the SASL layer, as RabbitMQ does not and other brokers do."""
    connection.scanner = _frames_of(connection)
    exchange, response = _begun(connection, Anonymous.NAME, b"")
    if exchange is None:
        # AMQP 1.0 2.2: an acceptable header, then the end.
        connection.out.raw(HEADER_1_0_SASL)
        connection.log("error", f"{connection.peer}: there is no anonymous user: SASL is needed")
        connection.remember_failure()
        connection.finish()
        return
    connection.mechanism = Anonymous.NAME
    exchange.step(response)
    go_on = partial(_logged_in, connection, exchange)
    # The input waits until the user is known.
    in_turn(connection, exchange, _ACCESS_REFUSED, lambda: when_clear(connection, exchange, go_on))


def refuse(connection: Connection) -> None:
    """Tell a peer in the SASL layer that its login has failed."""
    _send(connection, SaslOutcome(_REFUSED))


def _take(connection: Connection, body: bytes) -> None:
    """Serve a SASL frame."""
    composite, end = decode_performative(body)
    if end != len(body):
        raise FramingError(f"{composite.NAME} with a payload")
    if isinstance(composite, SaslInit):
        connection.moves(ConnectionEvent.SASL_INIT, composite.NAME)
        _begin_exchange(connection, str(composite.mechanism), composite.initial_response or b"")
    elif isinstance(composite, SaslResponse):
        connection.moves(ConnectionEvent.SASL_RESPONSE, composite.NAME)
        _step(connection, composite.response)
    else:
        raise FramingError(f"{composite.NAME} in the SASL layer")


def _begin_exchange(connection: Connection, mechanism: str, response: bytes) -> None:
    exchange, response = _begun(connection, mechanism, response)
    connection.mechanism = mechanism
    if exchange is None:
        text = f"unknown authentication mechanism '{mechanism}'"
        connection.log("error", f"{connection.peer}: {text}")
        raise LoginRefused(_ACCESS_REFUSED, text)
    connection.exchange = exchange
    _step(connection, response)


def _begun(
    connection: Connection, mechanism: str, response: bytes
) -> tuple[Exchange | None, bytes]:
    """Return the exchange of a mechanism, None if it is not offered, and its first response."""
    context = context_of(connection)
    if mechanism == Anonymous.NAME and _guest_may(connection, context, all_offers(context)):
        return begin_exchange(PlainExchange.NAME, context), _GUEST_RESPONSE
    return begin_exchange(mechanism, context) or begin_single(mechanism, context), response


def _guest_may(connection: Connection, context: Context, offered: list[str]) -> bool:
    """True if ANONYMOUS stands for the user guest and its first password."""
    if connection.settings.anonymous_user is not None or context.users.get(_GUEST) is None:
        return False
    allowed = context.allowed or USUAL
    return Anonymous.NAME in allowed and PlainExchange.NAME in offered


def _step(connection: Connection, response: bytes) -> None:
    """Continue the login with a response."""
    exchange = connection.exchange
    assert exchange is not None, "states let no answer in before a mechanism was chosen"
    challenge = step(connection, exchange, response)
    in_turn(connection, exchange, _ACCESS_REFUSED, partial(_stepped, connection, challenge))


def _stepped(connection: Connection, challenge: bytes | None) -> None:
    """Send the next challenge, or end the login."""
    exchange = connection.exchange
    assert exchange is not None, "as in `_step`"
    if challenge is not None:
        _send(connection, SaslChallenge(challenge))
        drop_repeated(connection)
        connection.state = ConnectionState.SECURING
        return
    connection.exchange = None
    when_clear(connection, exchange, partial(_logged_in, connection, exchange))


def _logged_in(connection: Connection, exchange: Exchange) -> None:
    """Wait for the header of AMQP, or refuse the login."""
    user = exchange.user
    if user is None:
        note_refused(connection, exchange)
        raise LoginRefused(
            _ACCESS_REFUSED,
            f"Login was refused using authentication mechanism {connection.mechanism}. "
            "For details see the broker logfile.",
        )
    connection.sign_in(user)
    connection.broker.events.actor = user.name
    authenticated(connection, user.name)
    if not connection.sasl:
        _send_header(connection)
        return
    _put(connection, _SUCCESS)
    drop_repeated(connection)
    connection.state = ConnectionState.TUNING
    negotiation = connection.scanner
    assert isinstance(negotiation, NegotiationScanner), "no frames of AMQP come before"
    negotiation.expects_header = True


def _take_header(connection: Connection, header: bytes) -> Scanner | None:
    """Answer the header of AMQP after the login; return the scanner of its frames."""
    connection.moves(ConnectionEvent.HEADER, ConnectionEvent.HEADER.value)
    if not is_amqp(header):
        # AMQP 1.0 2.2: a header that is supported, then the end.
        connection.out.raw(HEADER_1_0)
        connection.log("error", f"{connection.peer}: the header {header!r} after the login")
        connection.remember_failure()
        connection.cut()
        return None
    connection.scanner = _frames_of(connection)
    _send_header(connection)
    return connection.scanner


def _send_header(connection: Connection) -> None:
    connection.out.raw(HEADER_1_0)
    connection.touch()
    drop_repeated(connection)
    connection.state = ConnectionState.OPENING


def _frames_of(connection: Connection) -> Scanner:
    scanner = PerformativeScanner(connection.intake)
    scanner.work = connection.registry.work
    scanner.frame_max = connection.settings.initial_frame_max
    return scanner


def _send(connection: Connection, composite: DescribedList) -> None:
    _put(connection, _frame(composite))


def _put(connection: Connection, frame: bytes) -> None:
    connection.out.raw(frame)
    connection.touch()


def _frame(composite: DescribedList) -> bytes:
    return encode_frame(composite.encoded(), kind=SASL)


_SUCCESS = _frame(SaslOutcome(_OK))
