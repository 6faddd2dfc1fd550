"""The class message (class 120), except transfers: consumers, gets, credit, references.

Nothing here has a reply but `get` (a transfer, or empty) and `resume` (offset); everything else is
complete when it was executed, which execution.complete reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.permissions import READ, WRITE
from harebell.base.limits import WORK_FRAME_UNITS
from harebell.base.slices import stepped
from harebell.front.amqp_0_9_1.basic import consumer_priority
from harebell.front.amqp_0_10_transitional import transferring
from harebell.front.amqp_0_10_transitional.access import check_ticket
from harebell.front.amqp_0_10_transitional.credit import Credit
from harebell.front.amqp_0_10_transitional.deliveries import TransferConsumer, deliveries_of
from harebell.front.amqp_0_10_transitional.layer import layer_of
from harebell.front.amqp_0_10_transitional.queue import meant
from harebell.front.amqp_0_10_transitional.transferring import references_of
from harebell.front.common.access_tickets import READ as READING
from harebell.front.common.admission import check_consumer_count
from harebell.front.common.errors import hard, soft
from harebell.front.common.firehose_tap import delivered
from harebell.front.common.permission import QUEUE, check, check_some
from harebell.front.common.unacked import UnackedGet
from harebell.front.limits import SETTLED_AT_ONCE
from harebell.front.operations.consume import ConsumerOptions, check_consumer, end, start
from harebell.front.operations.get import count_empty, count_get, take_next
from harebell.model.queue.features.alternate_exchange import ALTERNATE
from harebell.model.resource import rendered
from harebell.model.transaction import REJECT, REQUEUE
from harebell.wire.v09 import methods_transitional as m

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel
    from harebell.model.queue.contract import Queue

_CLASS = 120
_CONSUME, _GET, _RECOVER, _REJECT = 20, 40, 50, 520
_CODES = (0, 1)


def _queue(channel: TransitionalChannel, name: str, ticket: int, method_id: int) -> Queue:
    """Find a queue to read from."""
    check_ticket(channel, ticket, READING, (_CLASS, method_id))
    name = meant(channel, name, _CLASS, method_id)
    check(channel, READ, QUEUE, name)
    queue: Queue = channel.vhost.queue(name, channel.connection)
    return queue


def consume(channel: TransitionalChannel, method: m.MessageConsume) -> None:
    """message.consume: one consumer per destination; the empty one is the default consumer."""
    queue = _queue(channel, method.queue, method.ticket, _CONSUME)
    if channel.consumers is None:
        channel.consumers = {}
    consumers = channel.consumers
    if method.destination in consumers:
        text = f"attempt to reuse destination '{method.destination}'"
        raise hard(530, text, _CLASS, _CONSUME)
    check_consumer_count(channel.connection, len(consumers), (_CLASS, _CONSUME))
    resource = rendered("queue", queue.name, channel.vhost.name)
    limit = deliveries_of(channel).credit.limit
    options = ConsumerOptions(
        method.destination, method.no_ack, method.exclusive, limit, method.filter
    )
    exclusive = check_consumer(channel.vhost, queue, options)
    consumer = TransferConsumer(
        channel,
        queue,
        method.destination,
        no_ack=method.no_ack,
        exclusive=exclusive,
        priority=consumer_priority(method.filter, resource, (_CLASS, _CONSUME)),
        prefetch=limit,
        arguments=method.filter,
        excluded=channel.connection.origin if method.no_local else 0,
    )
    start(channel, consumers, consumer)


def cancel(channel: TransitionalChannel, method: m.MessageCancel) -> None:
    """message.cancel: unacknowledged deliveries are kept; an unknown consumer is ignored."""
    consumers = channel.consumers or {}
    consumer = consumers.get(method.destination)
    # Consumers of class basic have their tags in the same dictionary.
    if not isinstance(consumer, TransferConsumer):
        return
    del consumers[method.destination]
    end(channel, consumer)


def get(channel: TransitionalChannel, method: m.MessageGet) -> None:
    """message.get: a transfer to the destination, or message.empty."""
    queue = _queue(channel, method.queue, method.ticket, _GET)
    next_message = take_next(queue)
    if next_message is None:
        count_empty(channel, queue)
        channel.connection.send(channel.number, m.MessageEmpty())
        return
    message, position, redelivered = next_message
    details = count_get(channel, queue, no_ack=method.no_ack, redelivered=redelivered)
    deliveries = deliveries_of(channel)
    number = deliveries.send(message, method.destination, redelivered)
    if channel.router.tracer is not None:
        delivered(channel, message, queue.name, redelivered)
    if method.no_ack:
        queue.settle(position)
    else:
        tag = deliveries.note(number)
        channel.unacked.put(tag, UnackedGet(queue, position, tag, details))


def recover(channel: TransitionalChannel, method: m.MessageRecover) -> None:
    """message.recover: requeue unacknowledged messages, or deliver them to the same consumers."""
    if channel.transaction is not None:
        raise soft(406, "message.recover in a transacted session", _CLASS, _RECOVER)
    deliveries = deliveries_of(channel)
    if len(deliveries) > SETTLED_AT_ONCE:
        connection = channel.connection
        recovering = deliveries.recovering(requeue=method.requeue)
        connection.perform(stepped(recovering, connection.registry.work, WORK_FRAME_UNITS, bool))
        return
    entries = deliveries.take_all()
    if not method.requeue:
        # Those that cannot be sent again, such as of cancelled consumers and gets, are requeued.
        entries = [entry for entry in entries if not deliveries.send_again(entry)]
    if entries:
        channel.take_effect(entries, REQUEUE)


def reject(channel: TransitionalChannel, method: m.MessageReject) -> None:
    """message.reject: reject the oldest unacknowledged transfer.

    The method has no field for the transfer. A client that completes what it has processed and
    rejects the rest means the oldest one. Without an exchange for rejected messages, the message is
    requeued.
    """
    if method.code not in _CODES:
        text = f"reject code {method.code} is neither 0 (generic) nor 1 (not immediate)"
        raise hard(502, text, _CLASS, _REJECT)
    deliveries = deliveries_of(channel)
    entry = deliveries.take_oldest()
    if entry is None:
        raise hard(503, "there is no transfer to reject", _CLASS, _REJECT)
    queue = entry.queue
    has_exchange = getattr(queue, "dead_letters", None) is not None or ALTERNATE in queue.arguments
    deliveries.give([entry], REJECT if has_exchange else REQUEUE)


def qos(channel: TransitionalChannel, method: m.MessageQos) -> None:
    """message.qos: for the session or, with `global`, for the connection."""
    connection = channel.connection
    deliveries = deliveries_of(channel)
    credit = deliveries.credit
    if method.global_:
        layer = layer_of(connection)
        if layer.credit is None:
            layer.credit = Credit()
        credit = layer.credit
    credit.size, credit.limit = method.prefetch_size, method.prefetch_count
    # A higher limit permits deliveries now, and a shared one also on other channels.
    channel.serve()
    deliveries.freed()


def open_(channel: TransitionalChannel, method: m.MessageOpen) -> None:
    """message.open: begin a body in pieces."""
    check_some(channel, "a body in pieces", WRITE)
    references_of(channel).open(method.reference)


def append(channel: TransitionalChannel, method: m.MessageAppend) -> None:
    """message.append: add a piece."""
    references_of(channel).append(method.reference, method.octets)
    channel.connection.published = True


def checkpoint(channel: TransitionalChannel, method: m.MessageCheckpoint) -> None:
    """message.checkpoint: keep the received pieces after the end of the session."""
    references_of(channel).checkpoint(method.reference, method.identifier)


def resume(channel: TransitionalChannel, method: m.MessageResume) -> None:
    """message.resume: continue from the last checkpoint, at `offset`."""
    offset = references_of(channel).resume(method.reference, method.identifier)
    channel.connection.published = True
    channel.connection.send(channel.number, m.MessageOffset(value=offset))


def unasked(channel: TransitionalChannel, method: m.MessageOffset | m.MessageEmpty) -> None:
    """message.offset and message.empty: refused, the broker sends no request for them."""
    method_id = 530 if isinstance(method, m.MessageOffset) else 510
    raise hard(503, f"{method.NAME} answers nothing that was asked", _CLASS, method_id)


HANDLERS = {
    m.MessageConsume: consume,
    m.MessageCancel: cancel,
    m.MessageGet: get,
    m.MessageRecover: recover,
    m.MessageOpen: open_,
    m.MessageClose: transferring.close,
    m.MessageAppend: append,
    m.MessageCheckpoint: checkpoint,
    m.MessageResume: resume,
    m.MessageQos: qos,
    m.MessageEmpty: unasked,
    m.MessageReject: reject,
    m.MessageOffset: unasked,
}
