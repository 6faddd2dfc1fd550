"""The class stream (AMQP 0-10, class 10): packets without acknowledgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_10.file import request_of
from harebell.front.amqp_0_10.file_stage import read_list
from harebell.front.amqp_0_10.file_stream_adapter import adapter_of
from harebell.front.file_stream.classes import shared_of
from harebell.front.file_stream.consuming import cancel as cancel_consumer
from harebell.front.file_stream.consuming import start
from harebell.front.file_stream.publishing import Publish, accept, routed
from harebell.front.file_stream.stream_consumer import StreamConsumer
from harebell.model.queue.contract import Queue
from harebell.wire.v010 import commands
from harebell.wire.v09.methods_older import StreamConsumeOk
from harebell.wire.v09.property_list import STREAM

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.session import Session

_PUBLISH = 6


def qos(session: Session, command: commands.StreamQos) -> None:
    """stream.qos: for the session, or with `global` for the connection as a whole."""
    lane = adapter_of(session).classes.packets
    shared = shared_of(session.connection)
    window, rate = (shared.packets, shared.rate) if command.global_ else (lane.window, lane.rate)
    window.limit(command.prefetch_count or 0, command.prefetch_size or 0)
    rate.limit(command.consume_rate or 0)
    session.send(commands.StreamQosOk())
    lane.go_on()


def consume(session: Session, command: commands.StreamConsume) -> None:
    """stream.consume: packets are sent at the requested rate."""
    adapter = adapter_of(session)

    def make(queue: Queue, tag: str, options: dict[str, Any]) -> StreamConsumer:
        return StreamConsumer(adapter.classes.packets, queue, tag, **options)

    start(adapter, request_of(STREAM.class_id, command), make, StreamConsumeOk)


def cancel(session: Session, command: commands.StreamCancel) -> None:
    """stream.cancel: requeue waiting packets; an unknown tag is ignored."""
    tag = command.consumer_tag or ""
    if isinstance(session.consumers.get(tag), StreamConsumer):
        cancel_consumer(adapter_of(session), tag, True, StreamConsumeOk)


def publish(session: Session, command: commands.StreamPublish, header: bytes, body: bytes) -> None:
    """stream.publish: complete when the packet is in its queues."""
    adapter = adapter_of(session)
    flags = command.mandatory | command.immediate << 1
    request = Publish(STREAM, _PUBLISH, command.exchange or "", command.routing_key or "", flags)
    properties = STREAM.parse(read_list(STREAM, header))
    packet = routed(adapter, request, properties, body)
    adapter.went_through(0, accept(adapter, packet, request.flags))


COMMANDS: dict[type, Any] = {
    commands.StreamQos: qos,
    commands.StreamConsume: consume,
    commands.StreamCancel: cancel,
}
CONTENT_COMMANDS: dict[type, Any] = {commands.StreamPublish: publish}
