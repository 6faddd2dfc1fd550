"""The queue class: declare, bind, unbind, purge, delete (AMQP 0-9-1 1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.permissions import CONFIGURE, READ, WRITE
from harebell.front.amqp_0_9_1.direct_reply import check_not_reply, declare_reply
from harebell.front.amqp_0_9_1.lasting import is_open, perform
from harebell.front.common.long_operation import deletion
from harebell.front.common.names import clean, generated, meant
from harebell.front.common.permission import (
    EXCHANGE,
    QUEUE,
    check,
    check_any,
    check_forwarding,
    check_topic,
)
from harebell.model.binding import Binding
from harebell.model.queue.browsed import leaves_messages
from harebell.model.queue.kind import Queue
from harebell.model.queue.reply import REPLY_TO
from harebell.model.reserved import check_queue_name
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel

GENERATED_PREFIX = "amq.gen-"


def find(channel: Channel, name: str) -> Queue:
    """The queue a name means, for this connection."""
    queue: Queue = channel.vhost.queue(meant(name, channel.last_queue), channel.connection)
    return queue


def declare(channel: Channel, method: methods.QueueDeclare) -> None:
    """queue.declare: make it, or check that it is the same; passive: say how it is.

    An empty name makes a queue with a generated one. A passive declare asks for the very name it
    gives, as with RabbitMQ: the queue declared last has no short form here.
    """
    name = clean(method.queue)
    if name.startswith(REPLY_TO):
        declare_reply(channel, name, nowait=method.nowait)
        return
    if method.passive:
        check_any(channel, QUEUE, name)
        queue = channel.vhost.queue(name, channel.connection)
    else:
        made_up = name == ""
        if made_up:
            name = generated(GENERATED_PREFIX, channel.connection.settings.rng)
        else:
            check_queue_name(name)
        check(channel, CONFIGURE, QUEUE, name)
        if name not in channel.vhost.queues:
            channel.vhost.check_room(name)
            check_forwarding(channel, name, method.arguments)
        queue = channel.vhost.declare_queue(
            name,
            durable=method.durable,
            exclusive=method.exclusive,
            auto_delete=method.auto_delete,
            arguments=method.arguments,
            owner=channel.connection,
            generated=made_up,
        )
        channel.connection.warn_of_ignored(queue)
    queue.declared()
    if queue.durable:
        channel.hold_until_recorded()
    channel.last_queue = queue.name
    if not method.nowait:
        reply = methods.QueueDeclareOk(
            queue=queue.name,
            message_count=queue.ready_count(),
            consumer_count=len(queue.consumers),
        )
        channel.connection.send(channel.number, reply)


def _binding_key(channel: Channel, method: methods.QueueBind | methods.QueueUnbind) -> str:
    """With neither queue nor key given, the queue declared last is both (AMQP 0-9-1 1.7.2.3)."""
    if method.queue == "" and method.routing_key == "":
        return meant("", channel.last_queue)
    return method.routing_key


def check_binding(channel: Channel, method: methods.QueueBind | methods.QueueUnbind) -> str:
    """Refuse a binding that the user may not make or undo; returns the name of the queue."""
    name = meant(method.queue, channel.last_queue)
    check_not_reply(name)
    check(channel, WRITE, QUEUE, name)
    channel.vhost.check_not_default(method.exchange)
    check(channel, READ, EXCHANGE, clean(method.exchange))
    check_topic(channel, READ, clean(method.exchange), _binding_key(channel, method))
    return name


def bind(channel: Channel, method: methods.QueueBind) -> None:
    """queue.bind: binding twice is the same as once."""
    name = check_binding(channel, method)
    key = _binding_key(channel, method)
    # With both missing the exchange is named, and before a queue that is somebody else's, too.
    channel.vhost.exchange(clean(method.exchange))
    queue = channel.vhost.queue(name, channel.connection)
    channel.vhost.bind(clean(method.exchange), queue, key, method.arguments)
    if queue.durable:
        channel.hold_until_recorded()
    if not method.nowait:
        channel.connection.send(channel.number, methods.QueueBindOk())


def unbind(channel: Channel, method: methods.QueueUnbind) -> None:
    """queue.unbind: also fine for a binding that does not exist, as with RabbitMQ."""
    name = check_binding(channel, method)
    key = _binding_key(channel, method)
    queue = channel.vhost.queues.get(name)
    exchange = channel.vhost.exchanges.get(clean(method.exchange))
    if queue is not None and exchange is not None:
        binding = Binding(exchange, queue, key, method.arguments)
        if binding.identity in exchange.bindings:
            # Somebody else's queue is in the way only where there is something to undo.
            channel.vhost.queue(name, channel.connection)
    channel.vhost.unbind(clean(method.exchange), queue, key, method.arguments)
    channel.hold_until_recorded()
    channel.connection.send(channel.number, methods.QueueUnbindOk())


def purge(channel: Channel, method: methods.QueuePurge) -> None:
    """queue.purge: drop what is ready; deliveries that are out stay out."""
    check(channel, READ, QUEUE, meant(method.queue, channel.last_queue))
    queue = find(channel, method.queue)
    count = queue.purge()
    if queue.sync_soon():
        channel.connection.hold_until(channel.connection.commit.ticket)
    if not method.nowait:
        channel.connection.send(channel.number, methods.QueuePurgeOk(message_count=count))


def delete(channel: Channel, method: methods.QueueDelete) -> None:
    """queue.delete: also fine for one that does not exist, as with RabbitMQ."""
    name = meant(method.queue, channel.last_queue)
    check(channel, CONFIGURE, QUEUE, name)
    conditions = {"if_unused": method.if_unused, "if_empty": method.if_empty}
    queue = channel.vhost.find_queue_to_delete(name, channel.connection, **conditions)

    def finish() -> None:
        _delete(channel, method, name, queue)

    perform(channel, deletion(channel.vhost, queue, finish), (50, 40))


def _delete(channel: Channel, method: methods.QueueDelete, name: str, queue: Queue | None) -> None:
    """The bindings are gone: now the queue, unless another has its name by now."""
    consumers = channel.consumers if channel.consumers is not None else {}
    # Consumers of this channel hear of it after the reply, as with RabbitMQ: a client that waits
    # for the reply need not expect to be told of what it does itself.
    own = {tag: each for tag, each in consumers.items() if each.queue.name == name}
    for tag in own:
        del consumers[tag]
    left = queue is not None and leaves_messages(queue)
    count = 0
    try:
        if channel.vhost.queues.get(name) is queue:
            count = channel.vhost.delete_queue(
                name, channel.connection, if_unused=method.if_unused, if_empty=method.if_empty
            )
    finally:
        consumers.update(own)
    if not is_open(channel):
        return
    channel.hold_until_recorded()
    if left:
        channel.connection.hold_until(channel.connection.commit.ticket)
    if not method.nowait:
        channel.connection.send(channel.number, methods.QueueDeleteOk(message_count=count))
    for consumer in own.values():
        channel.consumer_lost(consumer)


HANDLERS = {
    methods.QueueDeclare: declare,
    methods.QueueBind: bind,
    methods.QueueUnbind: unbind,
    methods.QueuePurge: purge,
    methods.QueueDelete: delete,
}
