"""The class connection (class 10): login, limits and the choice of a vhost.

The client of 2007 accepts what tune offers and sends no heartbeats, so none are offered. A
client that exceeds the limits is disconnected, as the specification requires.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_9_1 import handshake
from harebell.front.amqp_0_10_transitional.layer import layer_of
from harebell.front.common import login
from harebell.front.common.errors import hard
from harebell.front.common.handing_over import drop_repeated, hand_over
from harebell.wire.v09 import methods
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.connection import Connection

_CLASS, _OPEN = 10, 40
_COPYRIGHT = "Copyright the Harebell authors. Licensed under the Apache License 2.0."


def start(connection: Connection) -> None:
    """connection.start: only texts, because the client of 2007 reads only the types S and I."""
    settings = connection.settings
    properties = {
        "host": settings.host,
        "product": settings.product,
        "version": settings.version,
        "platform": settings.platform,
        "copyright": _COPYRIGHT,
        "information": settings.information,
        "cluster_name": settings.cluster_name,
    }
    method = methods.ConnectionStart(
        version_major=connection.profile.major,
        version_minor=connection.profile.minor,
        server_properties=properties,
        mechanisms=login.offered(connection),
        locales=handshake.LOCALE.encode(),
    )
    connection.send(0, method)
    drop_repeated(connection)
    connection.state = ConnectionState.STARTING


def start_ok(connection: Connection, method: methods.ConnectionStartOk) -> None:
    """connection.start-ok: log in; the types of its table are those that the client knows."""
    layer_of(connection).note_dialect(method.client_properties)
    handshake.start_ok(connection, method, heartbeat=0)


def tune_ok(connection: Connection, method: methods.ConnectionTuneOk) -> None:
    """connection.tune-ok: accept the client's limits; the broker chooses for 0."""
    settings = connection.settings
    for name, requested, offered in (
        ("channel-max", method.channel_max, settings.channel_max),
        ("frame-max", method.frame_max, settings.frame_max),
    ):
        # The rule "upper-limit": the socket is closed without connection.close, unlike in 0-9-1.
        if offered and requested > offered:
            text = f"{name} {requested} of the client is higher than ours, {offered}"
            settings.log("error", f"{connection.peer}: {text}")
            connection.remember_failure()
            connection.cut()
            return
    handshake.tune_ok(connection, method)


def open_(connection: Connection, method: methods.ConnectionOpen) -> None:
    """connection.open: select the vhost. There is no redirection, so insist has no effect."""
    name = method.virtual_host
    if name not in connection.broker.vhosts:
        if hand_over(connection, name):
            return
        # 402, invalid-path: RabbitMQ's 530 is for the versions that it has.
        raise hard(402, f"vhost {name} not found", _CLASS, _OPEN)
    handshake.open_(connection, method)
    # The scanner passes single frames here, because commands are counted.
    connection.scanner.fast = connection.slowed = False


HANDLERS: dict[type, Callable[[Any, Any], object]] = {
    methods.ConnectionStartOk: start_ok,
    methods.ConnectionTuneOk: tune_ok,
    methods.ConnectionOpen: open_,
    methods.ConnectionClose: handshake.close,
    methods.ConnectionCloseOk: handshake.close_ok,
}
