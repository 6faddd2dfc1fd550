"""Log in with SASL: the context of a mechanism, and the offers of versions with one response.

0-8, 0-9, 0-9-1 and the transitional 0-10 have the mechanisms that end with the first response, as
their clients know no others: those of RabbitMQ. The final 0-10 has challenges, too
(`harebell.front.amqp_0_10.login`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.auth.sasl.exchange import Context, Exchange
from harebell.auth.sasl.exchanges import begin_single, single_offers
from harebell.base.errors import ProtocolError
from harebell.front.common.event_exchange import authenticated
from harebell.model.events import INTERNAL_USER
from harebell.wire.v09.fields import decode_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harebell.front.common.base_connection import BaseConnection


class LoginRefused(ProtocolError):
    """A login was refused. It is counted by address and user, not by address alone."""


def _table_without_length(data: bytes) -> Mapping[str, Any]:
    """Decode an AMQPLAIN response."""
    table, _ = decode_table(len(data).to_bytes(4) + data)
    return table


def context_of(link: BaseConnection) -> Context:
    """Make the SASL context of a connection."""
    peer, settings = link.peer, link.settings
    return Context(
        link.users,
        peer.address,
        settings.rng,
        peer.certificate,
        settings.anonymous_user,
        settings.mechanisms,
        _table_without_length,
    )


def offered(link: BaseConnection) -> bytes:
    """List the mechanisms that can succeed with one response, as connection.start names them."""
    return " ".join(single_offers(context_of(link))).encode()


def begun(link: BaseConnection, mechanism: str) -> Exchange | None:
    """Begin the exchange of a mechanism; None when it is not offered."""
    return begin_single(mechanism, context_of(link))


def when_clear(link: Any, exchange: Exchange, go_on: Callable[[], None]) -> None:
    """Continue when the user is known: at once, or after a slow password hash was compared.

    Meanwhile what the peer sends waits, and others are served.

    Args:
        link: the connection.
        exchange: is over, but for a password in doubt.
        go_on: called then; what it raises closes the connection.
    """
    doubt, later = exchange.doubt, link.users.later
    if doubt is None or later is None:
        go_on()
        return
    verifying = link.hub.pending_logins.verifying
    verifying.add(link.origin)
    link.scanner.hold = True

    def compared(right: bool) -> None:
        verifying.discard(link.origin)
        if link.closing:
            return
        exchange.settle(right)
        try:
            go_on()
        except Exception as error:
            link.caught(error)
        link.touch()
        link.scanner.hold = False
        link.receive(b"", link.now)

    later(doubt, link.peer.address, compared, lambda: not link.closing)


def refused(link: BaseConnection, name: str) -> bool:
    """Log a refused login; False when the address is throttled and is not answered.

    Args:
        link: the connection, which is cut in that case.
        name: whom it wanted to be.
    """
    settings, address = link.settings, link.peer.address
    if link.hub.handshake_throttle.refused(address, name, link.now, settings.journal):
        link.cut()
        return False
    text = f"{link.mechanism} login refused: user '{name}'"
    settings.journal("warning", f"{link.peer}: {text}")
    link.broker.events.actor = INTERNAL_USER
    authenticated(link, name, text)
    return True
