"""Report publishes and deliveries to the firehose; never called while tracing is off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.message import Message, Properties
from harebell.model.firehose import Actor, further_keys
from harebell.wire.v09.content import decode_properties

if TYPE_CHECKING:
    from harebell.front.common.channel_like import ChannelLike
    from harebell.model.queue.contract import Queue


def actor(channel: ChannelLike) -> Actor:
    """Return the publisher or receiver, as the firehose names it."""
    connection = channel.connection
    return Actor(connection.peer.connection_name, channel.number, connection.user.name)


def published(
    channel: ChannelLike, message: Message, properties: Properties, queues: tuple[Queue, ...]
) -> None:
    """Report a published message; `properties` are those before the BCC header was removed."""
    keys = [message.routing_key]
    if properties.has_headers:
        keys += further_keys(decode_properties(properties.raw).headers or {})
    firehose = channel.router.tracer
    if firehose is not None:
        firehose.published(message, keys, queues, actor(channel))


def delivered(channel: ChannelLike, message: Message, queue: str, redelivered: bool) -> None:
    """Report a delivered message."""
    firehose = channel.router.tracer
    if firehose is not None:
        firehose.delivered(message, queue, redelivered, actor(channel))
