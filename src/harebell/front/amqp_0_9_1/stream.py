"""The stream class (AMQP 0-8, class stream): packets without acknowledgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_9_1.content import Content
from harebell.front.file_stream.classes import classes_of, shared_of
from harebell.front.file_stream.consuming import ConsumerRequest, start
from harebell.front.file_stream.consuming import cancel as cancel_consumer
from harebell.front.file_stream.publishing import Publish, accept, allowed, routed
from harebell.front.file_stream.stream_consumer import StreamConsumer
from harebell.model.queue.contract import Queue
from harebell.wire.v09 import methods_older as methods
from harebell.wire.v09.property_list import STREAM

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel

_CLASS = 80
_PUBLISH = 40


def qos(channel: Channel, method: methods.StreamQos) -> None:
    """stream.qos: for the channel, or with `global` for the connection as a whole."""
    lane = classes_of(channel).packets
    shared = shared_of(channel.connection)
    window, rate = (shared.packets, shared.rate) if method.global_ else (lane.window, lane.rate)
    window.limit(method.prefetch_count, method.prefetch_size)
    rate.limit(method.consume_rate)
    channel.connection.send(channel.number, methods.StreamQosOk())
    lane.go_on()


def consume(channel: Channel, method: methods.StreamConsume) -> None:
    """stream.consume: packets are sent at the requested rate."""
    lane = classes_of(channel).packets

    def make(queue: Queue, tag: str, options: dict[str, Any]) -> StreamConsumer:
        return StreamConsumer(lane, queue, tag, **options)

    request = ConsumerRequest.of(_CLASS, method, method.filter)
    start(channel, request, make, methods.StreamConsumeOk)


def cancel(channel: Channel, method: methods.StreamCancel) -> None:
    """stream.cancel: requeue packets that wait for the consumer."""
    cancel_consumer(channel, method.consumer_tag, method.nowait, methods.StreamCancelOk)


def publish(channel: Channel, method: methods.StreamPublish) -> None:
    """stream.publish: its content follows."""
    place = (_CLASS, _PUBLISH)
    # Before the content, which could be long, is received; `_published` checks it again.
    allowed(channel, _publish_of(method))
    gauge = channel.connection.registry.gauge
    channel.content = Content(method, gauge, place, STREAM.parse, _published)
    channel.connection.scanner.pending += 1


def _publish_of(method: methods.StreamPublish) -> Publish:
    flags = method.mandatory | method.immediate << 1
    return Publish(STREAM, _PUBLISH, method.exchange, method.routing_key, flags, method.ticket)


def _published(channel: Channel, content: Content) -> None:
    request = _publish_of(content.method)
    packet = routed(channel, request, content.properties, content.body())
    accept(channel, packet, request.flags)


HANDLERS = {
    methods.StreamQos: qos,
    methods.StreamConsume: consume,
    methods.StreamCancel: cancel,
    methods.StreamPublish: publish,
}
