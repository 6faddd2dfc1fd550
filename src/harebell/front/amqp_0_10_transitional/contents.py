"""The classes file and stream (classes 70 and 80): as in 0-9, with the tickets of this version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_9_1 import file, stream
from harebell.front.amqp_0_10_transitional.access import check_ticket
from harebell.front.common.access_tickets import READ, WRITE
from harebell.wire.v09 import methods_older as old

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_FILE, _STREAM = 70, 80
_CONSUME = 20


def file_consume(channel: TransitionalChannel, method: old.FileConsume) -> None:
    """file.consume: files are staged one by one."""
    check_ticket(channel, method.ticket, READ, (_FILE, _CONSUME))
    file.consume(channel, method)


def file_publish(channel: TransitionalChannel, method: old.FilePublish) -> None:
    """file.publish: publish a staged file."""
    check_ticket(channel, method.ticket, WRITE, (_FILE, 60))
    file.publish(channel, method)


def stream_consume(channel: TransitionalChannel, method: old.StreamConsume) -> None:
    """stream.consume: packets are sent at the requested rate."""
    check_ticket(channel, method.ticket, READ, (_STREAM, _CONSUME))
    stream.consume(channel, method)


def stream_publish(channel: TransitionalChannel, method: old.StreamPublish) -> None:
    """stream.publish: its content follows."""
    check_ticket(channel, method.ticket, WRITE, (_STREAM, 40))
    stream.publish(channel, method)


HANDLERS = {
    **file.HANDLERS,
    **stream.HANDLERS,
    old.FileConsume: file_consume,
    old.FilePublish: file_publish,
    old.StreamConsume: stream_consume,
    old.StreamPublish: stream_publish,
}
