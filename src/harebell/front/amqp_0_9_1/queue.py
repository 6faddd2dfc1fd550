"""The queue class: declare, bind, unbind, purge, delete (AMQP 0-9-1 1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_9_1.direct_reply import check_not_reply, declare_reply
from harebell.front.amqp_0_9_1.long_methods import is_open, perform
from harebell.front.common.names import clean, generated, meant
from harebell.front.common.permission import QUEUE
from harebell.front.operations import bind as bind_operation
from harebell.front.operations.bind import BindingRequest
from harebell.front.operations.caller import caller_of
from harebell.front.operations.declare import QueueOptions, declare_queue, find_queue
from harebell.front.operations.delete import deletable_queue, deletion
from harebell.front.operations.get import readable_queue
from harebell.front.operations.purge import purge_queue
from harebell.model.queue.contract import Queue
from harebell.model.queue.features.alternate_exchange import leaves_messages
from harebell.model.queue.reply import REPLY_TO
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
        options = QueueOptions(
            method.durable, method.exclusive, method.auto_delete, method.arguments, generates
        )
        queue = declare_queue(caller, name, options)
    # Any declaration is a use for x-expires, also a passive one.
    queue.declared()
    # A crash after the reply must not lose the queue.
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


def binding_request(
    channel: Channel, method: methods.QueueBind | methods.QueueUnbind
) -> BindingRequest:
    """Return the binding that a method names."""
    name = meant(method.queue, channel.last_queue)
    check_not_reply(name)
    key = _binding_key(channel, method)
    return BindingRequest(QUEUE, name, clean(method.exchange), key, method.arguments)


def bind(channel: Channel, method: methods.QueueBind) -> None:
    """queue.bind: a repetition changes nothing."""
    binding = bind_operation.bind(caller_of(channel), binding_request(channel, method))
    # A binding of a transient queue is not recorded, so nothing is waited for.
    if binding.destination.durable:
        channel.hold_until_recorded()
    if not method.nowait:
        channel.connection.send(channel.number, methods.QueueBindOk())


def unbind(channel: Channel, method: methods.QueueUnbind) -> None:
    """queue.unbind: succeeds for a missing binding, as with RabbitMQ."""
    bind_operation.unbind(caller_of(channel), binding_request(channel, method))
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
    routes_messages = queue is not None and leaves_messages(queue)
    count = 0
    try:
        # Bindings were removed in slices: by now the queue may be gone, or declared again.
        if channel.vhost.queues.get(name) is queue:
            count = channel.vhost.delete_queue(
                name, channel.connection, if_unused=method.if_unused, if_empty=method.if_empty
            )
    finally:
        # Also after a refusal, such as if-empty with a message that came during the slices.
        consumers.update(own)
    if not is_open(channel):
        return
    channel.hold_until_recorded()
    if routes_messages:
        # Its messages went to the alternate exchange: they are in other logs of this commit.
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
