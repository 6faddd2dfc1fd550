"""SASL logins: the context of a mechanism, and the mechanisms of versions with one response.

0-8, 0-9, 0-9-1 and the transitional 0-10 offer the mechanisms that end with the first response, as
their clients know only those: RabbitMQ's. The final 0-10 also has challenges
(`harebell.front.amqp_0_10.login`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

from harebell.auth.sasl.exchange import Context, Exchange, SaslError
from harebell.auth.sasl.exchanges import begin_single, single_offers
from harebell.base.c_types import C, Done, i64
from harebell.base.errors import ProtocolError
from harebell.front.common.connection_log import log_failed
from harebell.front.common.errors import hard
from harebell.front.common.event_exchange import authenticated
from harebell.front.common.password_guesses import TooManyGuesses
from harebell.front.limits import CLIENT_PROPERTIES_VALUES, GUESS_WAIT_SECONDS
from harebell.model.events import INTERNAL_USER
from harebell.wire.v09.fields import decode_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from harebell.auth.users import Users
    from harebell.front.common.base_connection import BaseConnection

_CONNECTION, _START_OK = 10, 11
_MS = 1_000


class LoginRefused(ProtocolError):
    """A login was refused. It is counted by address and user, not by address alone."""


def _table_without_length(data: bytes) -> Mapping[str, Any]:
    """Decode an AMQPLAIN response."""
    # The response is a field table (0-9-1 4.2.5.5) without its length.
    table, _ = decode_table(len(data).to_bytes(4) + data)
    return table


def context_of(connection: BaseConnection) -> C[Context]:
    """Make the SASL context of a connection."""
    peer, settings = connection.peer, connection.settings
    return Context(
        connection.users,
        peer.address,
        partial(_drawn, connection),
        peer.certificate,
        settings.anonymous_user or "",
        settings.mechanisms,
        _table_without_length,
        peer.user,
    )


def _drawn(connection: BaseConnection, count: int) -> bytes:
    """Return random bytes for a challenge; if the client has had it already, the same again."""
    connection.entropy = connection.peer.entropy or connection.settings.rng(count)
    return connection.entropy


def note_client(connection: BaseConnection, properties: Mapping[str, Any]) -> Done:
    """Keep the properties of a client.

    Raises:
        ProtocolError: 530, it has more of them than are kept before a login.
    """
    count: i64 = _values_of(properties)
    if count > CLIENT_PROPERTIES_VALUES:
        text = f"the client has {count} properties, and at most {CLIENT_PROPERTIES_VALUES} are kept"
        raise hard(530, text, _CONNECTION, _START_OK)
    connection.client_properties = properties
    return 0


def _values_of(value: Any) -> i64:
    """Return how many values there are in a table or a list, and in those inside it."""
    if isinstance(value, dict | Mapping):
        value = value.values()
    elif not isinstance(value, list):
        return 0
    count: i64 = 0
    for each in value:
        count += 1 + _values_of(each)
    return count


def offered(connection: BaseConnection) -> bytes:
    """List the mechanisms that can succeed with one response, as connection.start names them."""
    return " ".join(single_offers(context_of(connection))).encode()


def begun(connection: BaseConnection, mechanism: str) -> Exchange | None:
    """Begin the exchange of a mechanism; None when it is not offered."""
    return begin_single(mechanism, context_of(connection))


def step(connection: Any, exchange: Exchange, response: bytes) -> bytes | None:
    """Give a response to an exchange; return the next challenge, None at the end.

    A malformed response is refused like a wrong password: the client does not learn what was wrong.
    """
    try:
        return exchange.step(response)
    except SaslError as error:
        connection.log("warning", f"{connection.peer}: {error}")
        return None


def in_turn(
    connection: BaseConnection, exchange: Exchange, code: int, go_on: Callable[[], object]
) -> Done:
    """Continue after a step of an exchange: at once, or when the outcome of a guess may be told.

    Args:
        connection: the connection that logs in; its peer waits meanwhile.
        exchange: the exchange; the password may not be compared yet.
        code: closes the connection if it is refused for now.
        go_on: called afterwards; an error that it raises closes the connection.

    Raises:
        LoginRefused: too many guesses from the address wait; the text says for how long.
    """
    if not exchange.guess or exchange.waited:
        go_on()
        return 0
    guesses, settings = connection.registry.handshake_throttle.guesses, connection.settings
    # The wait must not use up the time of the handshake: then the login would end without a reason.
    longest = min(GUESS_WAIT_SECONDS, settings.handshake_timeout / 2)
    try:
        seconds = guesses.wait(
            connection.peer.address,
            exchange.name,
            connection.now,
            right=exchange.right,
            longest=longest,
        )
    except TooManyGuesses as error:
        raise LoginRefused(code, str(error)) from None
    exchange.waited = True
    if seconds:
        _go_on_in(connection, seconds, go_on)
    else:
        go_on()
    return 0


def _go_on_in(connection: Any, seconds: float, go_on: Callable[[], object]) -> None:
    """Continue a login after some seconds."""
    timers = connection.broker.timers
    finish = _finish(connection, go_on)

    def come() -> None:
        connection.now += seconds

    timers.timer(lambda: finish(come)).set(timers.clock.steady + ceil(seconds * _MS))


def when_clear(connection: BaseConnection, exchange: Exchange, go_on: Callable[[], object]) -> Done:
    """Continue after authentication: at once, or when hashes are compared or backends answer.

    Input of the peer waits meanwhile; other connections are served.

    Args:
        connection: the connection that logs in.
        exchange: the finished exchange; the password may not be compared yet.
        go_on: called afterwards; an error that it raises closes the connection.
    """
    users: Users = connection.users
    claim, doubt = exchange.claim, exchange.doubt
    waits = partial(_waits, connection)
    if claim is not None and users.log_in is not None:
        users.log_in(claim, partial(_finish(connection, go_on), exchange.answer), waits)
    elif doubt is not None and users.later is not None:
        settle = partial(_finish(connection, go_on), exchange.settle)
        users.later(doubt, connection.peer.address, settle, waits)
    else:
        go_on()
    return 0


def _waits(connection: BaseConnection) -> bool:
    return not connection.closing


def _finish(connection: Any, go_on: Callable[[], object]) -> Callable[..., None]:
    """Hold the input of a connection; return what continues, called with how to note the result."""
    verifying = connection.registry.pending_logins.verifying
    verifying.add(connection.origin)
    connection.scanner.hold = True

    def finish(note: Callable[..., None], *result: object) -> None:
        verifying.discard(connection.origin)
        # The peer has left, or the time of the handshake was over.
        if connection.closing:
            return
        note(*result)
        try:
            go_on()
        # A timer or a backend calls: no scanner is there to catch the error.
        except Exception as error:
            connection.caught(error)
        connection.touch()
        if connection.origin in verifying:
            # The password has had its turn, and is compared now.
            return
        connection.scanner.hold = False
        connection.receive(b"", connection.now)

    return finish


def note_refused(connection: BaseConnection, exchange: Exchange) -> None:
    """Count a refused login, and log it unless there were too many."""
    name = exchange.name
    settings, address = connection.settings, connection.peer.address
    if connection.registry.handshake_throttle.guesses.refused(
        address, name, connection.now, settings.log, guess=exchange.guess
    ):
        return
    user = connection.users.get(name)
    local = user is not None and not connection.users.admits(user, address)
    why = f"user '{name}' - invalid credentials"
    if exchange.barred or (local and connection.users.log_in is None):
        why = f"user '{name}' can only connect via localhost"
    text = f"{connection.mechanism} login refused: {exchange.why or why}"
    log_failed(connection, text)
    # No user has logged in, so the event is no act of a user.
    connection.broker.events.actor = INTERNAL_USER
    authenticated(connection, name, text)
