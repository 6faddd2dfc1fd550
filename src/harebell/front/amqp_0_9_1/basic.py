"""The basic class, except the per-message path (AMQP 0-9-1 1.8; nack is RabbitMQ's)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_9_1.content import Content
from harebell.front.amqp_0_9_1.direct_reply import consume_replies
from harebell.front.amqp_0_9_1.queue import find_readable
from harebell.front.amqp_0_9_1.settling import settle_all
from harebell.front.common.admission import check_consumer_count
from harebell.front.common.errors import hard, soft
from harebell.front.common.firehose_tap import delivered
from harebell.front.common.interceptors import stamped_as_sent
from harebell.front.common.names import generated
from harebell.front.common.unacked import UnackedGet
from harebell.front.limits import REFUSED_AT_ONCE, REQUEUED_AT_ONCE
from harebell.front.operations.consume import ConsumerOptions, check_arguments, end, start
from harebell.front.operations.get import count_empty, count_get, take_next
from harebell.model.equivalence import type_name
from harebell.model.queue.reply import REPLY_TO
from harebell.model.resource import rendered
from harebell.model.transaction import REJECT, REQUEUE, REQUEUE_RETURNED
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel

TAG_PREFIX = "amq.ctag-"
_CLASS = 60
_REJECT = 90
_NACK = 120


def qos(channel: Channel, method: methods.BasicQos) -> None:
    """basic.qos: for consumers started later, or with `global` for the channel as a whole."""
    if method.prefetch_size:
        # RabbitMQ has no limit in bytes, and closes the connection with 540.
        raise hard(540, f"prefetch_size!=0 ({method.prefetch_size})", _CLASS, 10)
    if not method.global_:
        channel.prefetch = method.prefetch_count
    channel.connection.send(channel.number, methods.BasicQosOk())
    # After the reply: a higher limit may deliver at once, which must not come before it.
    if method.global_:
        channel.limit(method.prefetch_count)


def consumer_priority(
    arguments: Mapping[str, Any], resource: str, ids: tuple[int, int] = (_CLASS, 20)
) -> int:
    """Return the priority of a consumer from its arguments.

    Args:
        arguments: of the consumer.
        resource: the queue, as errors name it.
        ids: class and method.

    Raises:
        ProtocolError: 406 for the channel.
    """
    value = arguments.get("x-priority", 0)
    # A boolean of the table is an int for Python, but not for RabbitMQ.
    if isinstance(value, bool) or not isinstance(value, int):
        raise soft(
            406,
            f"invalid arg 'x-priority' for {resource}: "
            f'"expected integer, got {type_name(value)}"',
            *ids,
        )
    return max(-(2**31), min(value, 2**31 - 1))


def consume(channel: Channel, method: methods.BasicConsume) -> None:
    """basic.consume: the reply is sent before the first delivery."""
    if method.queue == REPLY_TO:
        consume_replies(channel, method)
        return
    tag = method.consumer_tag or generated(TAG_PREFIX, channel.connection.settings.rng)
    if channel.consumers is None:
        channel.consumers = {}
    if tag in channel.consumers:
        # The tag is how both sides name the consumer: RabbitMQ closes the connection.
        raise hard(530, f"attempt to reuse consumer tag '{tag}'", _CLASS, 20)
    check_consumer_count(channel.connection, len(channel.consumers), (_CLASS, 20))
    queue = find_readable(channel, method.queue)
    resource = rendered("queue", queue.name, channel.vhost.name)
    options = ConsumerOptions(
        method.consumer_tag, method.no_ack, method.exclusive, channel.prefetch, method.arguments
    )
    exclusive = check_arguments(channel.vhost, queue, options)
    # In 0-8 and 0-9 every prefetch is that of the channel, so no queue refuses it there.
    if channel.prefetch_global and channel.connection.profile.extended:
        queue.check_prefetch_global()
    channel.vhost.check_consumer(queue, exclusive=exclusive)
    consumer = channel.connection.profile.consumer(
        channel,
        queue,
        tag,
        no_ack=method.no_ack,
        exclusive=exclusive,
        priority=consumer_priority(method.arguments, resource),
        prefetch=channel.prefetch,
        arguments=method.arguments,
        excluded=channel.connection.origin if method.no_local else 0,
    )

    def confirm() -> None:
        channel.connection.send(channel.number, methods.BasicConsumeOk(consumer_tag=tag))

    start(channel, channel.consumers, consumer, None if method.nowait else confirm)


def cancel_ok(channel: Channel, method: methods.BasicCancelOk) -> None:
    """basic.cancel-ok: accepted only after a basic.cancel of the broker."""
    if not channel.cancelled:
        raise hard(503, "unimplemented method", _CLASS, 31)


def cancel(channel: Channel, method: methods.BasicCancel) -> None:
    """basic.cancel: unacknowledged deliveries are not affected; an unknown tag is ignored."""
    consumers = channel.consumers
    consumer = consumers.pop(method.consumer_tag, None) if consumers else None
    if not method.nowait:
        reply = methods.BasicCancelOk(consumer_tag=method.consumer_tag)
        channel.connection.send(channel.number, reply)
    if consumer is not None:
        end(channel, consumer)


def get(channel: Channel, method: methods.BasicGet) -> None:
    """basic.get: one message, or get-empty."""
    queue = find_readable(channel, method.queue)
    next_message = take_next(queue)
    if next_message is None:
        count_empty(channel, queue)
        channel.connection.send(channel.number, methods.BasicGetEmpty())
        return
    message, position, redelivered = next_message
    details = count_get(channel, queue, no_ack=method.no_ack, redelivered=redelivered)
    if channel.connection.stamps:
        message = stamped_as_sent(channel.connection, message)
    tag = channel.next_tag
    channel.next_tag += 1
    reply = methods.BasicGetOk(
        delivery_tag=tag,
        redelivered=redelivered,
        exchange=message.exchange,
        routing_key=message.routing_key,
        message_count=queue.ready_count(),
    )
    # Prefetch limits do not apply to basic.get, as with RabbitMQ.
    channel.connection.send_content(channel.number, reply, message)
    if channel.router.tracer is not None:
        delivered(channel, message, queue.name, redelivered)
    if method.no_ack:
        queue.settle(position)
    else:
        channel.unacked.put(tag, UnackedGet(queue, position, tag, details))


def publish(channel: Channel, method: methods.BasicPublish) -> None:
    """basic.publish whose header and body arrive as single frames."""
    channel.content = Content(method, channel.connection.registry.gauge)
    channel.connection.scanner.pending += 1
    channel.connection.begins_publish()


def ack(channel: Channel, method: methods.BasicAck) -> None:
    """basic.ack."""
    channel.ack(method.delivery_tag, method.multiple)


def _refuse(channel: Channel, tag: int, multiple: bool, requeue: bool, method_id: int) -> None:
    kind = REJECT
    if requeue:
        # As in RabbitMQ 4.3, where only basic.reject counts towards the delivery limit.
        kind = REQUEUE_RETURNED if method_id == _NACK else REQUEUE
    few = REQUEUED_AT_ONCE if requeue else REFUSED_AT_ONCE
    if multiple and channel.transaction is None and channel.unacked.count > few:
        settle_all(channel, channel.last_of(tag, method_id), kind)
        return
    entries = channel.take(tag, multiple, method_id)
    if channel.transaction is not None:
        channel.transaction.settle(entries, kind)
    else:
        channel.take_effect(entries, kind)


def reject(channel: Channel, method: methods.BasicReject) -> None:
    """basic.reject: requeue, drop or dead-letter."""
    _refuse(channel, method.delivery_tag, False, method.requeue, _REJECT)


def nack(channel: Channel, method: methods.BasicNack) -> None:
    """basic.nack: reject several deliveries."""
    _refuse(channel, method.delivery_tag, method.multiple, method.requeue, _NACK)


def _check_recover(requeue: bool, method_id: int) -> None:
    """Refuse requeue=false, as RabbitMQ does."""
    if not requeue:
        raise hard(540, "requeue=false", _CLASS, method_id)


def requeue_all(channel: Channel) -> None:
    """Requeue every delivery of the channel, in slices if there are many."""
    if channel.unacked.count > REQUEUED_AT_ONCE:
        # Up to the newest tag of now: deliveries that follow meanwhile are not part of it.
        settle_all(channel, channel.next_tag - 1, REQUEUE)
    else:
        channel.requeue(channel.take(0, True, 0))


def recover(channel: Channel, method: methods.BasicRecover) -> None:
    """basic.recover: requeue all unacknowledged deliveries of this channel.

    The reply is sent before the first redelivery: deliveries that arrive before it were requeued,
    those after it are new.
    """
    _check_recover(method.requeue, 110)
    channel.connection.send(channel.number, methods.BasicRecoverOk())
    requeue_all(channel)


def recover_async(channel: Channel, method: methods.BasicRecoverAsync) -> None:
    """basic.recover-async: requeue all unacknowledged deliveries, without a reply."""
    _check_recover(method.requeue, 100)
    requeue_all(channel)


HANDLERS = {
    methods.BasicQos: qos,
    methods.BasicConsume: consume,
    methods.BasicCancel: cancel,
    methods.BasicCancelOk: cancel_ok,
    methods.BasicGet: get,
    methods.BasicPublish: publish,
    methods.BasicAck: ack,
    methods.BasicReject: reject,
    methods.BasicNack: nack,
    methods.BasicRecover: recover,
    methods.BasicRecoverAsync: recover_async,
}
