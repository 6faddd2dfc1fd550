"""The class queue (class 50): bind and unbind have completion, the others a reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.permissions import CONFIGURE
from harebell.front.amqp_0_9_1.queue import GENERATED_PREFIX
from harebell.front.amqp_0_9_1.queue import delete as common_delete
from harebell.front.amqp_0_9_1.queue import purge as common_purge
from harebell.front.amqp_0_10_transitional.access import check_ticket
from harebell.front.common.access_tickets import ACTIVE, PASSIVE
from harebell.front.common.access_tickets import READ as READING
from harebell.front.common.errors import hard, soft
from harebell.front.common.names import generated
from harebell.front.common.permission import QUEUE, check
from harebell.front.operations.bind import BOUND, UNBOUND, check_binding
from harebell.front.operations.caller import caller_of
from harebell.front.operations.declare import QueueOptions, find_queue, make_queue
from harebell.model.binding import Binding
from harebell.model.queue.features.alternate_exchange import ALTERNATE, leaves_messages
from harebell.model.resource import RESERVED_PREFIX, rendered
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue

_CLASS = 50
_DECLARE, _BIND, _PURGE, _DELETE, _UNBIND = 10, 20, 30, 40, 50


def meant(channel: TransitionalChannel, name: str, class_id: int, method_id: int) -> str:
    """Resolve a queue name: "" is the queue declared last.

    Raises:
        ProtocolError: 530 for the connection when there is none.
    """
    if not name and not channel.last_queue:
        text = "the name of the queue is empty, and none was declared here"
        raise hard(530, text, class_id, method_id)
    return name or channel.last_queue


def declare(channel: TransitionalChannel, method: methods.QueueDeclare) -> None:
    """queue.declare: create it, or check its alternate; passive: describe it."""
    connection, vhost, name = channel.connection, channel.vhost, method.queue
    right = PASSIVE if method.passive else ACTIVE
    check_ticket(channel, method.ticket, right, (_CLASS, _DECLARE))
    if method.passive:
        queue = find_queue(caller_of(channel), name)
    elif name in vhost.queues:
        check(channel, CONFIGURE, QUEUE, name)
        queue = _same(channel, vhost.queue(name, connection), method)
    else:
        queue = _make(channel, method)
    queue.declared()
    if queue.durable:
        connection.hold_until(vhost.recorder.ticket)
    channel.last_queue = queue.name
    if not method.nowait:
        answer = methods.QueueDeclareOk(queue.name, queue.ready_count(), len(queue.consumers))
        connection.send(channel.number, answer)


def _same(channel: TransitionalChannel, queue: Queue, method: methods.QueueDeclare) -> Queue:
    """Check a redeclaration, in which durable and auto-delete are ignored."""
    alternate = queue.arguments.get(ALTERNATE, "")
    if method.alternate_exchange and method.alternate_exchange != alternate:
        resource = rendered("queue", queue.name, channel.vhost.name)
        text = f"{resource} has the alternate exchange '{alternate}'"
        raise soft(504, text, _CLASS, _DECLARE)
    if method.exclusive and queue.owner is None and not queue.durable:
        # An exclusive queue that lost its session has no owner, and may get another.
        _claim(channel, queue)
    same: Queue = channel.vhost.declare_queue(
        queue.name,
        durable=queue.durable,
        exclusive=method.exclusive or queue.owner is not None,
        auto_delete=queue.auto_delete,
        arguments={**queue.arguments, **method.arguments},
        owner=channel.connection,
        generated=True,
    )
    return same


def _claim(channel: TransitionalChannel, queue: Queue) -> None:
    """Make a queue without an owner exclusive."""
    own = {
        id(consumer)
        for each in channel.connection.channels.values()
        for consumer in (each.consumers or {}).values()
    }
    if any(id(each) not in own for each in (*queue.consumers, *queue.browsers)):
        resource = rendered("queue", queue.name, channel.vhost.name)
        raise soft(405, f"{resource} is used by others", _CLASS, _DECLARE)
    channel.vhost.give(queue, channel.connection)
    channel.exclusive.add(queue.name)


def _make(channel: TransitionalChannel, method: methods.QueueDeclare) -> Queue:
    connection, name = channel.connection, method.queue
    generates = name == ""
    if generates:
        name = generated(GENERATED_PREFIX, connection.settings.rng)
    check(channel, CONFIGURE, QUEUE, name)
    if not generates and name.startswith(RESERVED_PREFIX):
        text = f"queue name '{name}' begins with the reserved '{RESERVED_PREFIX}'"
        raise hard(530, text, _CLASS, _DECLARE)
    arguments = dict(method.arguments)
    if method.alternate_exchange:
        arguments[ALTERNATE] = method.alternate_exchange
    options = QueueOptions(
        method.durable, method.exclusive, method.auto_delete, arguments, generates
    )
    queue = make_queue(caller_of(channel), name, options)
    if method.exclusive:
        channel.exclusive.add(name)
    return queue


def _ends(
    channel: TransitionalChannel, method: methods.QueueBind | methods.QueueUnbind, method_id: int
) -> tuple[Exchange, Queue, str]:
    """Check and return exchange, queue and key of a binding."""
    vhost = channel.vhost
    check_ticket(channel, method.ticket, ACTIVE, (_CLASS, method_id))
    name = meant(channel, method.queue, _CLASS, method_id)
    if not method.exchange:
        raise hard(530, "the name of the exchange is empty", _CLASS, method_id)
    key = method.routing_key
    if not method.queue and not key:
        key = name
    event = BOUND if method_id == _BIND else UNBOUND
    check_binding(channel, QUEUE, name, method.exchange, key, event=event)
    queue = vhost.queue(name, channel.connection)
    return vhost.exchange(method.exchange), queue, key


def bind(channel: TransitionalChannel, method: methods.QueueBind) -> None:
    """queue.bind: binding twice is the same as once."""
    exchange, queue, key = _ends(channel, method, _BIND)
    resource = rendered("exchange", exchange.name, channel.vhost.name)
    if exchange.internal:
        raise hard(530, f"{resource} is internal", _CLASS, _BIND)
    if queue.durable and not exchange.durable:
        text = f"durable queue '{queue.name}' cannot be bound to the transient {resource}"
        raise hard(530, text, _CLASS, _BIND)
    channel.vhost.bind(exchange.name, queue, key, method.arguments)
    if queue.durable:
        channel.hold_until_recorded()


def unbind(channel: TransitionalChannel, method: methods.QueueUnbind) -> None:
    """queue.unbind: a missing binding closes the connection, as the specification requires."""
    exchange, queue, key = _ends(channel, method, _UNBIND)
    if Binding(exchange, queue, key, method.arguments) not in exchange.bindings:
        text = f"queue '{queue.name}' is not bound like that to exchange '{exchange.name}'"
        raise hard(530, text, _CLASS, _UNBIND)
    channel.vhost.unbind(exchange.name, queue, key, method.arguments)
    channel.hold_until_recorded()


def purge(channel: TransitionalChannel, method: methods.QueuePurge) -> None:
    """queue.purge: drop ready messages; unacknowledged ones are not affected."""
    check_ticket(channel, method.ticket, READING, (_CLASS, _PURGE))
    meant(channel, method.queue, _CLASS, _PURGE)
    common_purge(channel, method)


def delete(channel: TransitionalChannel, method: methods.QueueDelete) -> None:
    """queue.delete: remaining messages go to its alternate exchange, if it has one."""
    check_ticket(channel, method.ticket, ACTIVE, (_CLASS, _DELETE))
    name = meant(channel, method.queue, _CLASS, _DELETE)
    check(channel, CONFIGURE, QUEUE, name)
    queue = channel.vhost.queue(name, channel.connection)
    method.queue = name
    if leaves_messages(queue):
        # Its messages go to the alternate exchange: they are in other logs of this commit.
        channel.connection.hold_until(channel.connection.commit.ticket)
    common_delete(channel, method)


HANDLERS = {
    methods.QueueDeclare: declare,
    methods.QueueBind: bind,
    methods.QueueUnbind: unbind,
    methods.QueuePurge: purge,
    methods.QueueDelete: delete,
}
