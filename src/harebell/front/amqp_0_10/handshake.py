"""The class connection: from protocol header to open, and the end (AMQP 0-10 9.1).

`harebell.wire.v010.states` lists which control is legal in which state; this file has the handlers.
A peer that fails is sent the reason, and the failure is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.base import limits
from harebell.base.counters import BY_CLIENT
from harebell.base.errors import ProtocolError
from harebell.front.amqp_0_10 import login
from harebell.front.amqp_0_10.errors import (
    CONNECTION_FORCED,
    INVALID_PATH,
    connection_error,
    framing,
)
from harebell.front.common.admission import check_connection
from harebell.front.common.connection_log import log_closing, log_granted
from harebell.front.common.event_exchange import connection_created
from harebell.front.common.handing_over import drop_repeated, hand_over
from harebell.front.common.login import note_client
from harebell.wire.v010 import controls
from harebell.wire.v010.composites import Control
from harebell.wire.v010.states import CONNECTION_SERVER
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.connection import Connection

LOCALE = "en_US"
DEFAULT_VHOST = "/"
"""The vhost of clients that name none, as most clients of 0-10 do."""


def take(connection: Connection, channel: int, control: Control) -> None:
    """Serve a control of class connection."""
    if channel != 0:
        raise framing(f"{control.NAME} on channel {channel}")
    follows = CONNECTION_SERVER[connection.state].get(control.NAME)
    if follows is None:
        if connection.state is ConnectionState.CLOSING:
            return
        state = connection.state.value
        raise framing(f"{control.NAME} while the connection is {state}")
    handle = HANDLERS.get(type(control))
    if handle is not None:
        handle(connection, control)


def start(connection: Connection) -> None:
    """connection.start: properties of the broker and SASL mechanisms."""
    settings = connection.settings
    properties = {
        "product": "harebell",
        "version": settings.version,
        "platform": settings.platform,
        "host": settings.host,
        "information": settings.information,
        "copyright": "Copyright the Harebell authors. Licensed under the Apache License 2.0.",
    }
    mechanisms = login.offered(connection)
    connection.send_control(0, controls.ConnectionStart(properties, mechanisms, [LOCALE]))
    drop_repeated(connection)
    connection.state = ConnectionState.STARTING


def start_ok(connection: Connection, control: controls.ConnectionStartOk) -> None:
    """connection.start-ok: begin the login."""
    try:
        note_client(connection, control.client_properties)
    except ProtocolError as error:
        # Shared checks have the codes of 0-9-1, here and below.
        raise _refused(error.text) from None
    connection.mechanism = control.mechanism
    login.begin(connection, control.mechanism, control.response, lambda: tune(connection))


def secure_ok(connection: Connection, control: controls.ConnectionSecureOk) -> None:
    """connection.secure-ok: the client's answer to a challenge."""
    login.go_on(connection, control.response, lambda: tune(connection))


def tune(connection: Connection) -> None:
    """connection.tune: offer limits after the login."""
    settings = connection.settings
    connection.send_control(
        0,
        controls.ConnectionTune(
            channel_max=settings.channel_max,
            max_frame_size=_frame_max(connection),
            heartbeat_min=0,
            heartbeat_max=_heartbeat_max(connection),
        ),
    )
    drop_repeated(connection)
    connection.state = ConnectionState.TUNING


def _frame_max(connection: Connection) -> int:
    return min(
        connection.settings.frame_max or limits.SEGMENT_FRAME_BYTES, limits.SEGMENT_FRAME_BYTES
    )


def _heartbeat_max(connection: Connection) -> int:
    # Twice the configured interval: clients of 0-10 choose within a range, and not one value.
    return min(2 * connection.settings.heartbeat, 65535)


def tune_ok(connection: Connection, control: controls.ConnectionTuneOk) -> None:
    """connection.tune-ok: accept the client's limits; a missing one is chosen by the broker."""
    offered = _frame_max(connection)
    size = control.max_frame_size or offered
    if not limits.FRAME_MIN_BYTES <= size <= offered:
        raise _refused(
            f"max-frame-size {size} is not between {limits.FRAME_MIN_BYTES} and {offered}"
        )
    limit = connection.settings.channel_max
    if limit and control.channel_max > limit:
        raise _refused(f"channel-max {control.channel_max} is more than {limit}")
    heartbeat = control.heartbeat or 0
    if heartbeat > _heartbeat_max(connection):
        raise _refused(f"heartbeat {heartbeat} is more than {_heartbeat_max(connection)}")
    connection.frame_max = size
    connection.channel_max = control.channel_max or limit
    connection.heartbeat = heartbeat
    connection.state = ConnectionState.OPENING


def _refused(text: str) -> ProtocolError:
    return connection_error(CONNECTION_FORCED, text)


def open_(connection: Connection, control: controls.ConnectionOpen) -> None:
    """connection.open: select the vhost; sessions may begin."""
    name = control.virtual_host or DEFAULT_VHOST
    vhost = connection.broker.vhosts.get(name)
    if vhost is None:
        # Before the permission: the broker that owns the vhost checks it.
        if hand_over(connection, name):
            return
        raise connection_error(INVALID_PATH, f"vhost {name} not found")
    try:
        check_connection(connection, vhost)
    except ProtocolError as error:
        raise _refused(error.text) from None
    user = connection.user.name
    if not connection.user.opens(name):
        raise _refused(f"access to vhost '{name}' refused for user '{user}'")
    connection.vhost = vhost
    connection.state = ConnectionState.OPEN
    connection.scanner.frame_max = connection.frame_max
    connection.scan_whole()
    connection.broker.events.actor = user
    connection.has_opened()
    connection_created(connection)
    connection.send_control(0, controls.ConnectionOpenOk())
    log_granted(connection, name)


def close(connection: Connection, control: controls.ConnectionClose) -> None:
    """connection.close: release everything of the connection, then reply."""
    # In CLOSING both sides have closed at once: everything is released, and the broker's own close
    # still waits for its close-ok.
    if connection.state is not ConnectionState.CLOSING:
        log_closing(connection)
        connection.end_reason = BY_CLIENT
        connection.release()

    # After the slices of `release`: when the client reads close-ok, its messages are ready again.
    def answer() -> bool:
        connection.send_control(0, controls.ConnectionCloseOk())
        if connection.state is not ConnectionState.CLOSING:
            connection.part()
        return True

    connection.perform(answer)


def close_ok(connection: Connection, control: controls.ConnectionCloseOk) -> None:
    """connection.close-ok: the reply to the broker's close."""
    connection.finish()


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    controls.ConnectionStartOk: start_ok,
    controls.ConnectionSecureOk: secure_ok,
    controls.ConnectionTuneOk: tune_ok,
    controls.ConnectionOpen: open_,
    controls.ConnectionClose: close,
    controls.ConnectionCloseOk: close_ok,
}
"""Heartbeats need no handler: any input counts as one."""
