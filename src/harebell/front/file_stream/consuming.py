"""Start and cancel consumers of the classes `file` and `stream`.

The checks are those of basic.consume, with the differences of the specification: an empty queue
name without a declared queue, and a duplicate consumer tag, close the connection with 530, and a
queue in exclusive use is 405.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import READ
from harebell.base.errors import ErrorKind, Refusal
from harebell.front.common.admission import check_consumer_count
from harebell.front.common.errors import hard, soft
from harebell.front.common.names import clean, generated
from harebell.front.common.permission import QUEUE, check
from harebell.front.operations.consume import ConsumerOptions, check_arguments, end
from harebell.front.operations.consume import start as start_consumer
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue
from harebell.wire.v09.method import Method

if TYPE_CHECKING:
    from harebell.front.file_stream.file_stream_channel import FileStreamChannel

TAG_PREFIX = "amq.ctag-"
_CONSUME = 20


@dataclass(frozen=True, slots=True)
class ConsumerRequest:
    """The fields of a method consume.

    Args:
        class_id: of the method.
        queue, tag: as given.
        no_local, exclusive, nowait: as given.
        filter: as given; {} in versions without it.
        ticket: the access ticket; 0 for none.
    """

    class_id: int
    queue: str
    tag: str
    no_local: bool
    exclusive: bool
    nowait: bool
    filter: Mapping[str, Any]
    ticket: int = 0

    @classmethod
    def of(cls, class_id: int, method: Any, arguments: Mapping[str, Any]) -> ConsumerRequest:
        """Return the request of a method consume of class file, stream or basic.

        Args:
            class_id: of the method.
            method: of any version; final 0-10 has no ticket, and None for an absent queue name.
            arguments: the filter or arguments of the method; its name differs between classes.
        """
        return cls(
            class_id,
            method.queue or "",
            method.consumer_tag,
            method.no_local,
            method.exclusive,
            method.nowait,
            arguments,
            getattr(method, "ticket", 0),
        )


def start(
    channel: FileStreamChannel,
    request: ConsumerRequest,
    make: Callable[[Queue, str, dict[str, Any]], Consumer],
    reply: type[Method],
) -> None:
    """Start a consumer: the reply is sent before the first delivery.

    Args:
        channel: the channel of the method.
        request: the fields of the method.
        make: makes the consumer, from queue, tag and options.
        reply: the consume-ok of the class.
    """
    class_id = request.class_id
    tag = request.tag or generated(TAG_PREFIX, channel.connection.settings.rng)
    consumers = channel.started()
    if tag in consumers:
        raise hard(530, f"attempt to reuse consumer tag '{tag}'", class_id, _CONSUME)
    name = clean(request.queue) or channel.last_queue
    if not name:
        raise hard(530, "no previously declared queue", class_id, _CONSUME)
    channel.check_presented(request.ticket, READ, (class_id, _CONSUME))
    check(channel, READ, QUEUE, name)
    queue = channel.find_queue(name)
    check_consumer_count(channel.connection, len(consumers), (class_id, _CONSUME))
    # With a prefetch, which streams require: windows and rates limit these consumers.
    consumer_options = ConsumerOptions(request.tag, False, request.exclusive, 1, request.filter)
    exclusive = check_arguments(channel.vhost, queue, consumer_options)
    try:
        channel.vhost.check_consumer(queue, exclusive=exclusive)
    except Refusal as refusal:
        # Only the exclusive use has another code than in class basic.
        if refusal.kind is not ErrorKind.ACCESS_REFUSED:
            raise
        raise soft(405, refusal.text, class_id, _CONSUME) from None
    options = {
        "exclusive": exclusive,
        "arguments": request.filter,
        "excluded": channel.connection.origin if request.no_local else 0,
    }
    consumer = make(queue, tag, options)

    def confirm() -> None:
        channel.say(reply(tag))

    start_consumer(channel, consumers, consumer, None if request.nowait else confirm)


def cancel(channel: FileStreamChannel, tag: str, nowait: bool, reply: type[Method]) -> None:
    """Cancel a consumer: unacknowledged deliveries are not affected; an unknown tag is ignored."""
    consumer = channel.started().pop(tag, None)
    if not nowait:
        channel.say(reply(tag))
    if consumer is not None:
        if channel.classes is not None:
            channel.classes.cancelled(consumer)
        end(channel, consumer)
