"""The connection class: from protocol header to open, and the end (AMQP 0-9-1 1.4 and 2.2.4).

`connection_states` lists which method is legal in which state; this file has the
handlers. The socket of a peer that fails before the connection is open is closed without
connection.close, except for a bad password if it announced `authentication_failure_close`, a
vhost it may not open, and a limit above the offer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from harebell.base import limits
from harebell.base.c_types import Cpdef, Done, i64
from harebell.base.counters import BY_CLIENT
from harebell.front.common import login
from harebell.front.common.admission import check_connection
from harebell.front.common.connection_log import log_closing, log_granted
from harebell.front.common.errors import hard
from harebell.front.common.event_exchange import authenticated, connection_created
from harebell.front.common.handing_over import drop_repeated, hand_over
from harebell.front.common.secrets import renew_secret
from harebell.wire.v09 import methods
from harebell.wire.v09.extensions import PROPERTY
from harebell.wire.v09.frames import METHOD
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.auth.sasl.exchange import Exchange
    from harebell.front.amqp_0_9_1.connection import Connection
    from harebell.front.amqp_0_9_1.profile import Profile

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
_STARTING, _TUNING = ConnectionState.STARTING, ConnectionState.TUNING
_OPENING, _OPEN = ConnectionState.OPENING, ConnectionState.OPEN
_ENDING = (ConnectionState.CLOSING, ConnectionState.CLOSED)


def start(connection: Connection) -> Done:
    """connection.start: properties of the broker and SASL mechanisms."""
    settings = connection.settings
    texts = (
        ("cluster_name", settings.cluster_name),
        ("host", settings.host),
        ("copyright", "Copyright the Harebell authors. Licensed under the Apache License 2.0."),
        ("information", settings.information),
        ("platform", settings.platform),
        ("product", settings.product),
        ("version", settings.version),
    )
    connection.out.frame(METHOD, 0, _encoded(connection.profile, texts, login.offered(connection)))
    connection.touch()
    # A client that another broker has passed on has had connection.start from that one.
    drop_repeated(connection)
    connection.state = _STARTING
    return 0


@lru_cache(maxsize=16)
def _encoded(profile: Profile, texts: tuple[tuple[str, str], ...], mechanisms: bytes) -> bytes:
    """Return connection.start: all connections of a version are sent the same."""
    properties: dict[str, Any] = {
        "capabilities": dict.fromkeys(CAPABILITIES, True) if profile.extended else {},
        **dict(texts),
    }
    if profile.extensions is not None:
        properties[PROPERTY] = dict(profile.extensions)
    method = methods.ConnectionStart(
        version_major=profile.major,
        version_minor=profile.minor,
        server_properties=properties,
        mechanisms=mechanisms,
        locales=LOCALE.encode(),
    )
    return profile.spec.encode(method)


def start_ok(
    connection: Connection, method: methods.ConnectionStartOk, heartbeat: int | None = None
) -> Done:
    """connection.start-ok: check the login, then offer limits.

    Args:
        connection: a connection that waits for start-ok.
        method: the mechanism, its response, and what the client can do.
        heartbeat: the offered interval; None for the configured one.
    """
    login.note_client(connection, method.client_properties)
    capabilities = method.client_properties.get("capabilities")
    product = method.client_properties.get("product")
    connection.qpid = isinstance(product, str) and product.lower().startswith(_QPID)
    # A client may send any value here; other types of a capability than `true` do not count.
    if isinstance(capabilities, dict) and connection.profile.capable:
        connection.capabilities = {name for name, on in capabilities.items() if on is True}
    exchange = login.begun(connection, method.mechanism)
    if exchange is None:
        raise hard(503, f"unknown authentication mechanism '{method.mechanism}'", _CLASS, 11)
    connection.mechanism = method.mechanism
    login.step(connection, exchange, bytes(method.response))
    # For the throttle of logins: with 403 other clients would get no answer (`may_get_close`).
    code = 403 if "authentication_failure_close" in connection.capabilities else 530
    go_on = partial(_logged_in, connection, exchange, heartbeat)
    login.in_turn(
        connection, exchange, code, partial(login.when_clear, connection, exchange, go_on)
    )
    return 0


def _logged_in(connection: Connection, exchange: Exchange, heartbeat: int | None) -> Cpdef[Done]:
    """Offer limits to the user, or refuse the login."""
    user = exchange.user
    if user is None:
        login.note_refused(connection, exchange)
        raise login.LoginRefused(
            403,
            f"Login was refused using authentication mechanism {connection.mechanism}. "
            "For details see the broker logfile.",
        )
    connection.sign_in(user)
    connection.broker.events.actor = user.name
    authenticated(connection, user.name)
    settings = connection.settings
    offer = (
        settings.channel_max,
        settings.frame_max,
        settings.heartbeat if heartbeat is None else heartbeat,
    )
    connection.out.frame(METHOD, 0, _tune(connection.profile, *offer))
    connection.touch()
    drop_repeated(connection)
    connection.state = _TUNING
    return 0


@lru_cache(maxsize=16)
def _tune(profile: Profile, channel_max: int, frame_max: int, heartbeat: int) -> bytes:
    """Return connection.tune: all connections of a version are sent the same."""
    method = methods.ConnectionTune(channel_max, frame_max, heartbeat)
    return profile.spec.encode(method)


def _negotiated(name: str, requested: i64, offered: i64, minimum: i64) -> i64:
    """Return the negotiated limit; the broker chooses for a client's 0."""
    if requested == 0:
        return offered
    if requested < minimum:
        raise hard(
            530,
            f"negotiated {name} = {requested} is lower than the minimum allowed value ({minimum})",
            _CLASS,
            31,
        )
    # An offer of 0 is no limit. 1.4.2.6 closes the socket without a close for a limit above the
    # offer; RabbitMQ sends connection.close with 530, which says why.
    if offered and requested > offered:
        raise hard(
            530,
            f"negotiated {name} = {requested} is higher than the maximum allowed value ({offered})",
            _CLASS,
            31,
        )
    return requested


def tune_ok(connection: Connection, method: methods.ConnectionTuneOk) -> Done:
    """connection.tune-ok: check the client's limits against the offer (AMQP 0-9-1 1.4.2.6)."""
    settings = connection.settings
    connection.channel_max = _negotiated("channel_max", method.channel_max, settings.channel_max, 1)
    connection.frame_max = _negotiated(
        "frame_max", method.frame_max, settings.frame_max, limits.FRAME_MIN_BYTES
    )
    # The client decides, also for none and for more than was offered, as with RabbitMQ.
    connection.heartbeat = method.heartbeat
    connection.state = _OPENING
    return 0


def open_(connection: Connection, method: methods.ConnectionOpen) -> Done:
    """connection.open: select the vhost; channels may be opened."""
    name = method.virtual_host
    vhost = connection.broker.vhosts.get(name)
    if vhost is None:
        # Before the permission: the broker that owns the vhost checks it.
        if hand_over(connection, name):
            return 0
        raise hard(530, f"vhost {name} not found", _CLASS, 40)
    check_connection(connection, vhost)
    if not connection.user.opens(name):
        user = connection.user.name
        raise hard(530, f"access to vhost '{name}' refused for user '{user}'", _CLASS, 40)
    connection.vhost = vhost
    connection.state = _OPEN
    # Not before: until the connection is open, nothing that a client may send needs larger frames.
    connection.scanner.frame_max = connection.frame_max
    connection.scan_whole()
    connection.broker.events.actor = connection.user.name
    connection.has_opened()
    connection_created(connection)
    connection.send(0, methods.ConnectionOpenOk())
    log_granted(connection, name)
    return 0


def update_secret(connection: Connection, method: methods.ConnectionUpdateSecret) -> None:
    """connection.update-secret: continue with the current state of the user."""
    name = connection.user.name
    connection.log("info", f"{connection.peer}: user '{name}' updates the secret: {method.reason}")

    def renewed() -> None:
        connection.send(0, methods.ConnectionUpdateSecretOk())

    def refused(text: str) -> None:
        raise hard(530, text, _CLASS, 70)

    secret = bytes(method.new_secret).decode(errors="replace")
    renew_secret(connection, secret, renewed, refused)


def close(connection: Connection, method: methods.ConnectionClose) -> Done:
    """connection.close: release everything of the connection, then reply."""
    if connection.state in _ENDING:
        # Both sides closed at once, or another thread of the client closes it again.
        connection.send(0, methods.ConnectionCloseOk())
        return 0
    log_closing(connection)
    connection.end_reason = BY_CLIENT
    connection.release()
    # After the slices of `release`: when the client reads close-ok, its messages are ready again.
    connection.perform(partial(_answer_close, connection))
    return 0


def _answer_close(connection: Connection) -> Cpdef[bool]:
    connection.send(0, methods.ConnectionCloseOk())
    connection.part()
    return True


def close_ok(connection: Connection, method: methods.ConnectionCloseOk) -> None:
    """connection.close-ok: the reply to the broker's close."""
    connection.finish()


HANDLERS: dict[type, Callable[[Any, Any], object]] = {
    methods.ConnectionStartOk: start_ok,
    methods.ConnectionTuneOk: tune_ok,
    methods.ConnectionOpen: open_,
    methods.ConnectionUpdateSecret: update_secret,
    methods.ConnectionClose: close,
    methods.ConnectionCloseOk: close_ok,
}
