"""The queue class: declare, bind, unbind, purge, delete (AMQP 0-9-1 1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_9_1.direct_reply import check_not_reply, declare_reply
from harebell.front.amqp_0_9_1.long_methods import is_open, perform
from harebell.front.common.names import clean, generated, meant
from harebell.front.common.permission import QUEUE
from harebell.front.operations import bind as bind_operation
from harebell.front.operations.caller import caller_of
from harebell.front.operations.declare import QueueOptions, declare_queue, find_queue
from harebell.front.operations.delete import deletable_queue, deletion
from harebell.front.operations.get import readable_queue
from harebell.front.operations.purge import purge_queue
from harebell.model.binding import Binding
from harebell.model.queue.contract import Queue
from harebell.model.queue.features.alternate_exchange import leaves_messages
from harebell.model.queue.reply import REPLY_TO
from harebell.model.reserved import check_queue_name
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel

GENERATED_PREFIX = "amq.gen-"


def find_readable(channel: Channel, name: str) -> Queue:
    """Resolve a queue name, for a user that may read the queue."""
    return readable_queue(caller_of(channel), meant(name, channel.last_queue))


def declare(channel: Channel, method: methods.QueueDeclare) -> None:
    """queue.declare: create it, or check that it is the same; passive: describe it.

    An empty name makes a queue with a generated one. A passive declaration uses exactly the name it
    has, as with RabbitMQ: "" does not mean the queue declared last.
    """
    name = clean(method.queue)
    if name.startswith(REPLY_TO):
        declare_reply(channel, name, nowait=method.nowait)
        return
    caller = caller_of(channel)
    if method.passive:
        queue = find_queue(caller, name)
    else:
        generates = name == ""
        if generates:
            name = generated(GENERATED_PREFIX, channel.connection.settings.rng)
        else:
            check_queue_name(name)
        options = QueueOptions(
            method.durable, method.exclusive, method.auto_delete, method.arguments, generates
        )
        queue = declare_queue(caller, name, options)
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
    """Return the key; without queue and key, the queue declared last (AMQP 0-9-1 1.7.2.3)."""
    if method.queue == "" and method.routing_key == "":
        return meant("", channel.last_queue)
    return method.routing_key


def check_binding(channel: Channel, method: methods.QueueBind | methods.QueueUnbind) -> str:
    """Refuse a binding that the user may not make or undo; returns the name of the queue."""
    name = meant(method.queue, channel.last_queue)
    check_not_reply(name)
    key = _binding_key(channel, method)
    bind_operation.check_binding(channel, QUEUE, name, clean(method.exchange), key)
    return name


def bind(channel: Channel, method: methods.QueueBind) -> None:
    """queue.bind: a repetition changes nothing."""
    name = check_binding(channel, method)
    key = _binding_key(channel, method)
    # RabbitMQ's order: a missing exchange is reported before a missing or exclusive queue.
    channel.vhost.exchange(clean(method.exchange))
    queue = channel.vhost.queue(name, channel.connection)
    channel.vhost.bind(clean(method.exchange), queue, key, method.arguments)
    if queue.durable:
        channel.hold_until_recorded()
    if not method.nowait:
        channel.connection.send(channel.number, methods.QueueBindOk())


def unbind(channel: Channel, method: methods.QueueUnbind) -> None:
    """queue.unbind: succeeds for a missing binding, as with RabbitMQ."""
    name = check_binding(channel, method)
    key = _binding_key(channel, method)
    queue = channel.vhost.queues.get(name)
    exchange = channel.vhost.exchanges.get(clean(method.exchange))
    if queue is not None and exchange is not None:
        binding = Binding(exchange, queue, key, method.arguments)
        if binding.identity in exchange.bindings:
            # An exclusive queue of others is refused only if there is a binding to remove.
            channel.vhost.queue(name, channel.connection)
    channel.vhost.unbind(clean(method.exchange), queue, key, method.arguments)
    channel.hold_until_recorded()
    channel.connection.send(channel.number, methods.QueueUnbindOk())


def purge(channel: Channel, method: methods.QueuePurge) -> None:
    """queue.purge: drop ready messages; unacknowledged ones are not affected."""
    purged = purge_queue(caller_of(channel), meant(method.queue, channel.last_queue))
    if purged.recorded:
        channel.connection.hold_until(channel.connection.commit.ticket)
    if not method.nowait:
        channel.connection.send(channel.number, methods.QueuePurgeOk(message_count=purged.count))


def delete(channel: Channel, method: methods.QueueDelete) -> None:
    """queue.delete: succeeds for a missing queue, as with RabbitMQ."""
    name = meant(method.queue, channel.last_queue)
    queue = deletable_queue(
        caller_of(channel), name, if_unused=method.if_unused, if_empty=method.if_empty
    )

    def finish() -> None:
        _delete(channel, method, name, queue)

    perform(channel, deletion(channel.vhost, queue, finish), (50, 40))


def _delete(channel: Channel, method: methods.QueueDelete, name: str, queue: Queue | None) -> None:
    """Delete the queue after its bindings, unless another queue has its name by now."""
    consumers = channel.consumers if channel.consumers is not None else {}
    # Consumers of this channel are cancelled after the reply, as with RabbitMQ: a client that waits
    # for the reply does not expect basic.cancel because of its own delete.
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
