"""The connection class: from protocol header to open, and the end (AMQP 0-9-1 1.4 and 2.2.4).

`harebell.wire.v09.states` lists which method is legal in which state; this file has the
handlers. The socket of a peer that fails before the connection is open is closed without
connection.close, except for a bad password if it announced `authentication_failure_close`, a
vhost it may not open, and a limit above the offer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.auth.authority import RemoteUser
from harebell.auth.sasl import SaslError
from harebell.base import limits
from harebell.front.common import login
from harebell.front.common.admission import check_connection
from harebell.front.common.connection_log import log_closing, log_granted
from harebell.front.common.errors import hard
from harebell.front.common.event_exchange import authenticated, connection_created
from harebell.wire.v09 import methods
from harebell.wire.v09.extensions import PROPERTY
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.auth.sasl.exchange import Exchange
    from harebell.front.amqp_0_9_1.connection import Connection

CAPABILITIES = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)
"""The capabilities that connection.start announces."""

LOCALE = "en_US"
_CLASS = 10
_QPID = "qpid"


def start(connection: Connection) -> None:
    """connection.start: properties of the broker and SASL mechanisms."""
    settings, profile = connection.settings, connection.profile
    properties: dict[str, Any] = {
        "capabilities": dict.fromkeys(CAPABILITIES, True) if profile.extended else {},
        "cluster_name": settings.cluster_name,
        "host": settings.host,
        "copyright": "Copyright the Harebell authors. Licensed under the Apache License 2.0.",
        "information": settings.information,
        "platform": settings.platform,
        "product": settings.product,
        "version": settings.version,
    }
    if profile.extensions is not None:
        properties[PROPERTY] = dict(profile.extensions)
    method = methods.ConnectionStart(
        version_major=profile.major,
        version_minor=profile.minor,
        server_properties=properties,
        mechanisms=login.offered(connection),
        locales=LOCALE.encode(),
    )
    connection.send(0, method)
    connection.drop_repeated()
    connection.state = ConnectionState.STARTING


def start_ok(
    connection: Connection, method: methods.ConnectionStartOk, heartbeat: int | None = None
) -> None:
    """connection.start-ok: check the login, then offer limits.

    Args:
        connection: a connection that waits for start-ok.
        method: the mechanism, its response, and what the client can do.
        heartbeat: the offered interval; None for the configured one.
    """
    connection.client_properties = method.client_properties
    capabilities = method.client_properties.get("capabilities")
    product = method.client_properties.get("product")
    connection.qpid = isinstance(product, str) and product.lower().startswith(_QPID)
    if isinstance(capabilities, dict) and connection.profile.capable:
        connection.capabilities = {name for name, on in capabilities.items() if on is True}
    exchange = login.begun(connection, method.mechanism)
    if exchange is None:
        raise hard(503, f"unknown authentication mechanism '{method.mechanism}'", _CLASS, 11)
    connection.mechanism = method.mechanism
    try:
        exchange.step(bytes(method.response))
    except SaslError as error:
        connection.log("warning", f"{connection.peer}: {error}")
    login.when_clear(connection, exchange, lambda: _logged_in(connection, exchange, heartbeat))


def _logged_in(connection: Connection, exchange: Exchange, heartbeat: int | None) -> None:
    """Offer limits to the user, or refuse the login."""
    user = exchange.user
    if user is None:
        if not login.refused(connection, exchange):
            return
        raise login.LoginRefused(
            403,
            f"Login was refused using authentication mechanism {connection.mechanism}. "
            "For details see the broker logfile.",
        )
    connection.sign_in(user)
    connection.broker.events.actor = user.name
    authenticated(connection, user.name)
    settings = connection.settings
    tune = methods.ConnectionTune(
        channel_max=settings.channel_max,
        frame_max=settings.frame_max,
        heartbeat=settings.heartbeat if heartbeat is None else heartbeat,
    )
    connection.send(0, tune)
    connection.drop_repeated()
    connection.state = ConnectionState.TUNING


def _negotiated(name: str, wanted: int, offered: int, minimum: int) -> int:
    """Return the negotiated limit; the broker chooses for a client's 0."""
    if wanted == 0:
        return offered
    if wanted < minimum:
        raise hard(
            530,
            f"negotiated {name} = {wanted} is lower than the minimum allowed value ({minimum})",
            _CLASS,
            31,
        )
    if offered and wanted > offered:
        raise hard(
            530,
            f"negotiated {name} = {wanted} is higher than the maximum allowed value ({offered})",
            _CLASS,
            31,
        )
    return wanted


def tune_ok(connection: Connection, method: methods.ConnectionTuneOk) -> None:
    """connection.tune-ok: check the client's limits against the offer (AMQP 0-9-1 1.4.2.6)."""
    settings = connection.settings
    connection.channel_max = _negotiated("channel_max", method.channel_max, settings.channel_max, 1)
    connection.frame_max = _negotiated(
        "frame_max", method.frame_max, settings.frame_max, limits.FRAME_MIN_BYTES
    )
    connection.heartbeat = method.heartbeat
    connection.scanner.frame_max = connection.frame_max
    connection.state = ConnectionState.OPENING


def open_(connection: Connection, method: methods.ConnectionOpen) -> None:
    """connection.open: select the vhost; channels may be opened."""
    name = method.virtual_host
    vhost = connection.broker.vhosts.get(name)
    if vhost is None:
        if connection.hand_over(name):
            return
        raise hard(530, f"vhost {name} not found", _CLASS, 40)
    check_connection(connection, vhost)
    if not connection.user.opens(name):
        user = connection.user.name
        raise hard(530, f"access to vhost '{name}' refused for user '{user}'", _CLASS, 40)
    connection.vhost = vhost
    connection.state = ConnectionState.OPEN
    connection.scanner.fast = True
    connection.broker.events.actor = connection.user.name
    connection.has_opened()
    connection_created(connection)
    connection.send(0, methods.ConnectionOpenOk())
    log_granted(connection, name)


def update_secret(connection: Connection, method: methods.ConnectionUpdateSecret) -> None:
    """connection.update-secret: continue with the current state of the user.

    Passwords do not expire, so it is accepted from their users; a token is replaced. The user's
    permissions are looked up again, and consumers of queues that it may no longer read are
    cancelled, as by RabbitMQ.
    """
    user = connection.user
    connection.log(
        "info",
        f"{connection.peer}: user '{user.name}' updates the secret: {method.reason}",
    )
    if not isinstance(user, RemoteUser) or user.renew is None:
        _updated(connection)
        return
    renew, refusal = user.renew, [""]

    def ask(wake: Callable[[], None]) -> None:
        def answered(why: str) -> None:
            refusal[0] = why
            wake()

        renew(bytes(method.new_secret).decode(errors="replace"), answered)

    def go_on() -> None:
        if refusal[0]:
            text = f"Secret update was refused for user '{user.name}': {refusal[0]}"
            connection.log("error", f"{connection.peer}: {text}")
            raise hard(530, "New secret was refused by one of the backends", _CLASS, 70)
        _updated(connection)

    connection.await_answer(ask, go_on)


def _updated(connection: Connection) -> None:
    """Check the permissions of what is open again, and reply."""
    if connection.vhost is not None:
        connection.vhost.router.changed()
    for channel in connection.channels.values():
        channel.cancel_forbidden()
    connection.send(0, methods.ConnectionUpdateSecretOk())


def close(connection: Connection, method: methods.ConnectionClose) -> None:
    """connection.close: release everything of the connection, then reply."""
    log_closing(connection)
    connection.release()

    def answer() -> bool:
        connection.send(0, methods.ConnectionCloseOk())
        connection.part()
        return True

    connection.perform(answer)


def close_ok(connection: Connection, method: methods.ConnectionCloseOk) -> None:
    """connection.close-ok: the reply to the broker's close."""
    connection.finish()


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    methods.ConnectionStartOk: start_ok,
    methods.ConnectionTuneOk: tune_ok,
    methods.ConnectionOpen: open_,
    methods.ConnectionUpdateSecret: update_secret,
    methods.ConnectionClose: close,
    methods.ConnectionCloseOk: close_ok,
}
