"""The login: the offered SASL mechanisms, and the exchange of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.sasl.exchanges import begin_exchange, offers
from harebell.front.amqp_0_10.errors import CONNECTION_FORCED, connection_error
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
from harebell.wire.v010 import controls
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from harebell.auth.sasl.exchange import Exchange
    from harebell.front.amqp_0_10.connection import Connection


def offered(connection: Connection) -> list[str]:
    """Return the mechanisms that can succeed for this peer."""
    return offers(context_of(connection))


def begin(
    connection: Connection, mechanism: str, response: bytes, done: Callable[[], None]
) -> None:
    """Begin the login with a mechanism; `done` is called when it has succeeded."""
    exchange = begin_exchange(mechanism, context_of(connection))
    if exchange is None:
        text = f"unknown authentication mechanism '{mechanism}'"
        raise connection_error(CONNECTION_FORCED, text)
    connection.exchange = exchange
    go_on(connection, response, done)


def go_on(connection: Connection, response: bytes, done: Callable[[], None]) -> None:
    """Continue the login with a response; `done` is called when it has succeeded."""
    exchange = connection.exchange
    assert exchange is not None, "states let no answer in before a mechanism was chosen"
    challenge = step(connection, exchange, response)

    def go_further() -> None:
        _stepped(connection, exchange, challenge, done)

    in_turn(connection, exchange, CONNECTION_FORCED, go_further)


def _stepped(
    connection: Connection, exchange: Exchange, challenge: bytes | None, done: Callable[[], None]
) -> None:
    """Send the next challenge, or end the login."""
    if challenge is not None:
        connection.send_control(0, controls.ConnectionSecure(challenge))
        drop_repeated(connection)
        connection.state = ConnectionState.SECURING
        return
    connection.exchange = None
    when_clear(connection, exchange, lambda: _logged_in(connection, exchange, done))


def _logged_in(connection: Connection, exchange: Exchange, done: Callable[[], None]) -> None:
    """Offer limits to the user, or refuse the login."""
    user = exchange.user
    if user is None:
        note_refused(connection, exchange)
        raise LoginRefused(
            CONNECTION_FORCED,
            f"Login was refused using authentication mechanism {connection.mechanism}. "
            "For details see the broker logfile.",
        )
    connection.sign_in(user)
    connection.broker.events.actor = user.name
    authenticated(connection, user.name)
    done()
