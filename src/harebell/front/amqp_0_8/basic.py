"""The basic class of 0-8 and 0-9, except the per-message path."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_9_1 import basic, tunnel
from harebell.front.amqp_0_9_1.legacy_basic import qos, recover_async, recover_unacked
from harebell.front.common.access_tickets import READ, WRITE
from harebell.wire.v09 import methods, methods_older
from harebell.wire.v09.domains import ABSENT

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel

_CLASS = 60
_CONSUME = (_CLASS, 20)
_PUBLISH = (_CLASS, 40)
_GET = (_CLASS, 70)


def consume(channel: LegacyChannel, method: methods.BasicConsume) -> None:
    """basic.consume: with arguments, which Qpid's clients send, or without."""
    channel.check_ticket(method.ticket, READ, _CONSUME)
    # The layout identifies the client: in 0-8 only Qpid's has arguments.
    channel.connection.qpid = method.arguments is not ABSENT
    if method.arguments.get(tunnel.ASKED) == 1:
        tunnel.consume(channel, method)
        return
    basic.consume(channel, method)


def get(channel: LegacyChannel, method: methods.BasicGet) -> None:
    """basic.get."""
    channel.check_ticket(method.ticket, READ, _GET)
    basic.get(channel, method)


def publish(channel: LegacyChannel, method: methods.BasicPublish) -> None:
    """basic.publish whose header and body arrive as single frames."""
    channel.check_ticket(method.ticket, WRITE, _PUBLISH)
    basic.publish(channel, method)


def recover_0_8(channel: LegacyChannel, method: methods.BasicRecover) -> None:
    """basic.recover of 0-8: Qpid's clients wait for a reply, other clients do not know it."""
    answer = methods.BasicRecoverOk() if channel.connection.qpid else None
    recover_unacked(channel, method.requeue, answer)


def recover_sync(channel: LegacyChannel, method: methods_older.BasicRecoverSync) -> None:
    """basic.recover-sync of Qpid's 0-9."""
    recover_unacked(channel, method.requeue, methods_older.BasicRecoverSyncOk())


def recover(channel: LegacyChannel, method: methods.BasicRecover) -> None:
    """basic.recover of 0-9-1, from a client of 0-9."""
    recover_unacked(channel, method.requeue, methods.BasicRecoverOk())


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    methods.BasicQos: qos,
    methods.BasicConsume: consume,
    methods.BasicGet: get,
    methods.BasicPublish: publish,
    methods.BasicRecover: recover,
    methods.BasicRecoverAsync: recover_async,
    methods_older.BasicRecoverSync: recover_sync,
}
HANDLERS_0_8 = {**HANDLERS, methods.BasicRecover: recover_0_8}
