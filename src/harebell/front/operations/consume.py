"""Start and end consumers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field

from harebell.front.common.channel_details import details_of
from harebell.front.common.channel_like import ChannelLike
from harebell.front.common.event_exchange import consumer_created, consumer_deleted
from harebell.front.common.kept import keep_consumer
from harebell.model.consumer import Consumer
from harebell.model.queue.arguments import STREAM, check_consumer_arguments, selector_of
from harebell.model.queue.contract import Queue
from harebell.model.queue.offsets import OFFSET
from harebell.model.resource import rendered
from harebell.model.vhost import VHost

if TYPE_CHECKING:
    from harebell.model.queue.stream import StreamQueue

_OWNER = "the consumer"


class ConsumerOptions(Struct, frozen=True):
    """The options of a consumer.

    Args:
        tag: as given; "" if the broker generates it.
        no_ack, exclusive: as given.
        prefetch: the most unacknowledged deliveries; 0 is no limit.
        arguments: as given.
    """

    tag: str
    no_ack: bool = False
    exclusive: bool = False
    prefetch: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)


def check_browser_arguments(vhost: VHost, queue: Queue, options: ConsumerOptions) -> None:
    """Refuse a consumer or browser with invalid arguments."""
    resource = rendered("queue", queue.name, vhost.name)
    check_consumer_arguments(resource, queue.arguments, options.arguments)
    selector_of(options.arguments, _OWNER)


def check_arguments(vhost: VHost, queue: Queue, options: ConsumerOptions) -> bool:
    """Refuse a consumer that the queue does not allow.

    Returns:
        Whether it is exclusive.
    """
    check_browser_arguments(vhost, queue, options)
    vhost.recorder.histories.check_offset(queue, options.arguments)
    return queue.check_consumer(
        options.tag,
        options.arguments,
        no_ack=options.no_ack,
        exclusive=options.exclusive,
        prefetch=options.prefetch,
    )


def check_consumer(vhost: VHost, queue: Queue, options: ConsumerOptions) -> bool:
    """Refuse a consumer that the queue does not allow, or not beside its other consumers.

    Returns:
        Whether it is exclusive.
    """
    exclusive = check_arguments(vhost, queue, options)
    vhost.check_consumer(queue, exclusive=exclusive)
    return exclusive


def start(
    channel: ChannelLike,
    consumers: dict[str, Any],
    consumer: Consumer,
    confirm: Callable[[], object] | None = None,
    *,
    browses: bool = False,
) -> None:
    """Start a consumer: its reply is sent before the first delivery.

    Args:
        channel: the channel of the method.
        consumers: the consumers of the channel, by tag.
        consumer: not yet known to its queue or channel.
        confirm: sends the reply; None for none.
        browses: whether it is a browser.

    Raises:
        Refusal: RESOURCE_ERROR, the consumers of the connection take too much memory.
    """
    # First, as it may refuse: nothing of the consumer exists yet.
    keep_consumer(channel, consumer)
    if consumer.excluded:
        # From now on publishes of this vhost note their connection; before, none needed to.
        channel.router.origins = True
    consumer.selector = selector_of(consumer.arguments, _OWNER)
    consumers[consumer.tag] = consumer
    consumer.counters = channel.counters
    consumer.details = details_of(channel).queue(consumer.queue.name)
    if confirm is not None:
        confirm()
    consumer_created(channel, consumer)
    if browses:
        consumer.queue.add_browser(consumer)
    else:
        consumer.queue.add_consumer(consumer)
    _note_clamped(channel, consumer)


def _note_clamped(channel: ChannelLike, consumer: Consumer) -> None:
    """Log that a stream ends before the offset that its consumer asked for."""
    asked, queue = consumer.arguments.get(OFFSET), consumer.queue
    if type(asked) is not int or queue.kind != STREAM:
        return
    reading = cast("StreamQueue", queue).reading_of(consumer)
    if reading is not None and asked > reading[0]:
        connection = channel.connection
        connection.log(
            "warning",
            f"{connection.peer}: consumer '{consumer.tag}' begins at {reading[0]}, where "
            f"{rendered('queue', queue.name, queue.vhost)} ends, and not at the offset {asked} "
            f"that it asked for: if it has read that far, {asked - reading[0]} messages are lost",
        )


def end(channel: ChannelLike, consumer: Consumer) -> None:
    """End a consumer that its client has cancelled: unacknowledged deliveries are not affected."""
    consumer_deleted(channel, consumer)
    channel.vhost.remove_consumer(consumer)
    if not consumer.queue.deleted:
        consumer.queue.drain()
