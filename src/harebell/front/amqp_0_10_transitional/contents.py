"""The classes file and stream (classes 70 and 80): as in 0-9, with the tickets of this version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_9_1 import file, stream
from harebell.front.amqp_0_10_transitional.access import check_ticket
from harebell.front.common.access_tickets import READ, WRITE
from harebell.wire.v09 import methods_file as mf
from harebell.wire.v09 import methods_stream as ms

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_FILE, _STREAM = 70, 80
_CONSUME = 20


def file_consume(channel: TransitionalChannel, method: mf.FileConsume) -> None:
    """file.consume: files are staged one by one."""
    check_ticket(channel, method.ticket, READ, (_FILE, _CONSUME))
    file.consume(channel, method)


def file_publish(channel: TransitionalChannel, method: mf.FilePublish) -> None:
    """file.publish: publish a staged file."""
    check_ticket(channel, method.ticket, WRITE, (_FILE, 60))
    file.publish(channel, method)


def stream_consume(channel: TransitionalChannel, method: ms.StreamConsume) -> None:
    """stream.consume: packets are sent at the requested rate."""
    check_ticket(channel, method.ticket, READ, (_STREAM, _CONSUME))
    stream.consume(channel, method)


def stream_publish(channel: TransitionalChannel, method: ms.StreamPublish) -> None:
    """stream.publish: its content follows."""
    check_ticket(channel, method.ticket, WRITE, (_STREAM, 40))
    stream.publish(channel, method)


HANDLERS = {
    **file.HANDLERS,
    **stream.HANDLERS,
    mf.FileConsume: file_consume,
    mf.FilePublish: file_publish,
    ms.StreamConsume: stream_consume,
    ms.StreamPublish: stream_publish,
}
