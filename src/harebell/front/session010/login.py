"""Logging in: which SASL mechanisms are offered, and the exchange of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.sasl.exchange import SaslError
from harebell.auth.sasl.exchanges import begin_exchange, offers
from harebell.front.login import context_of
from harebell.front.session010 import failure
from harebell.front.session010.errors import CONNECTION_FORCED
from harebell.front.told import authenticated
from harebell.model.events import INTERNAL_USER
from harebell.wire.v010 import controls
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.session010.connection import Connection


def offered(connection: Connection) -> list[str]:
    """The mechanisms that can succeed for this peer."""
    return offers(context_of(connection))


def begin(connection: Connection, mechanism: str, response: bytes) -> bool:
    """The client chose a mechanism; True when it is logged in."""
    exchange = begin_exchange(mechanism, context_of(connection))
    if exchange is None:
        text = f"unknown authentication mechanism '{mechanism}'"
        raise failure.connection_error(CONNECTION_FORCED, text)
    connection.exchange = exchange
    return go_on(connection, response)


def go_on(connection: Connection, response: bytes) -> bool:
    """The client answered; True when it is logged in, False when it is asked again."""
    exchange = connection.exchange
    assert exchange is not None, "states let no answer in before a mechanism was chosen"
    journal = connection.settings.journal
    try:
        challenge = exchange.step(response)
    except SaslError as error:
        journal("warning", f"{connection.peer}: {error}")
        challenge = None
    if challenge is not None:
        connection.send_control(0, controls.ConnectionSecure(challenge))
        connection.state = ConnectionState.SECURING
        return False
    connection.exchange = None
    user = exchange.user
    if user is None:
        text = f"{connection.mechanism} login refused: user '{exchange.name}'"
        journal("warning", f"{connection.peer}: {text}")
        connection.broker.events.actor = INTERNAL_USER
        authenticated(connection, exchange.name, text)
        raise failure.connection_error(
            CONNECTION_FORCED,
            f"Login was refused using authentication mechanism {connection.mechanism}. "
            "For details see the broker logfile.",
        )
    connection.sign_in(user)
    connection.broker.events.actor = user.name
    authenticated(connection, user.name)
    return True
