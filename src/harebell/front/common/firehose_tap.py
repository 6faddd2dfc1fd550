"""Report publishes and deliveries to the firehose; never called while tracing is off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.bcc import further_keys
from harebell.base.message import Message, Properties, new_message
from harebell.front.convert.editor import headers_of
from harebell.model.firehose import Actor

if TYPE_CHECKING:
    from harebell.front.common.channel_like import ChannelLike
    from harebell.model.queue.contract import Queue
    from harebell.model.router import Router


def actor(channel: ChannelLike) -> Actor:
    """Return the publisher or receiver, as the firehose names it."""
    connection = channel.connection
    return Actor(connection.peer.connection_name, channel.number, connection.user.name)


def published(
    channel: ChannelLike, message: Message, properties: Properties, queues: tuple[Queue, ...]
) -> None:
    """Report a published message; `properties` are those before the BCC header was removed."""
    published_by(actor(channel), channel.router, message, properties, queues)


def published_by(
    publisher: Actor,
    router: Router,
    message: Message,
    properties: Properties,
    queues: tuple[Queue, ...],
) -> None:
    """Report a message of a publisher, as `published` does."""
    keys = [message.routing_key]
    # CC and BCC are routing keys, too, and the message has lost its BCC already.
    if properties.has_headers:
        keys += further_keys(headers_of(new_message("", "", properties, b"")))
    firehose = router.tracer
    if firehose is not None:
        firehose.published(message, keys, queues, publisher)


def delivered(channel: ChannelLike, message: Message, queue: str, redelivered: bool) -> None:
    """Report a delivered message."""
    delivered_to(actor(channel), channel.router, message, queue, redelivered)


def delivered_to(
    receiver: Actor, router: Router, message: Message, queue: str, redelivered: bool
) -> None:
    """Report a message that a receiver gets."""
    firehose = router.tracer
    if firehose is not None:
        firehose.delivered(message, queue, redelivered, receiver)
