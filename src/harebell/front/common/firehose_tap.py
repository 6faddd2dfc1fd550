"""What a channel shows to the firehose; never called while tracing is off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.message import Message, Properties
from harebell.model.firehose import Actor, further_keys
from harebell.wire.v09.content import decode_properties

if TYPE_CHECKING:
    from harebell.front.common.channel_like import ChannelLike
    from harebell.model.queue.kind import Queue


def actor(channel: ChannelLike) -> Actor:
    """Who published, or was delivered to."""
    connection = channel.connection
    return Actor(connection.peer.connection_name, channel.number, connection.user.name)


def published(
    channel: ChannelLike, message: Message, properties: Properties, queues: tuple[Queue, ...]
) -> None:
    """A message was published; `properties` are its own before a BCC was taken away."""
    keys = [message.routing_key]
    if properties.has_headers:
        keys += further_keys(decode_properties(properties.raw).headers or {})
    firehose = channel.router.tracer
    if firehose is not None:
        firehose.published(message, keys, queues, actor(channel))


def delivered(channel: ChannelLike, message: Message, queue: str, redelivered: bool) -> None:
    """A message was delivered on this channel."""
    firehose = channel.router.tracer
    if firehose is not None:
        firehose.delivered(message, queue, redelivered, actor(channel))
