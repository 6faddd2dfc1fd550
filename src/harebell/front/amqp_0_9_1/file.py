"""The file class (AMQP 0-8, class file): files that are staged before they are delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.errors import ProtocolError
from harebell.base.message import Properties
from harebell.front.amqp_0_9_1.content import Content
from harebell.front.common.errors import soft
from harebell.front.common.unacked import Unacked
from harebell.front.file_stream.classes import classes_of, shared_of
from harebell.front.file_stream.consuming import ConsumerRequest, start
from harebell.front.file_stream.consuming import cancel as cancel_consumer
from harebell.front.file_stream.file_consumer import FileConsumer, FileUnacked
from harebell.front.file_stream.publishing import Publish
from harebell.model.queue.contract import Queue
from harebell.model.transaction import ACCEPT, REJECT, REQUEUE
from harebell.wire.v09 import methods_older as methods
from harebell.wire.v09.property_list import FILE

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel
    from harebell.front.file_stream.incoming import Arrivals

_CLASS = 70
_STAGE, _PUBLISH, _ACK, _REJECT = 50, 60, 90, 100


def qos(channel: Channel, method: methods.FileQos) -> None:
    """file.qos: for the channel, or with `global` for the connection as a whole."""
    lane = classes_of(channel).files
    window = shared_of(channel.connection).files if method.global_ else lane.window
    window.limit(method.prefetch_count, method.prefetch_size)
    channel.connection.send(channel.number, methods.FileQosOk())
    lane.go_on()


def consume(channel: Channel, method: methods.FileConsume) -> None:
    """file.consume: files are staged one by one."""
    lane = classes_of(channel).files

    def make(queue: Queue, tag: str, options: dict[str, Any]) -> FileConsumer:
        return FileConsumer(lane, queue, tag, automatic=method.no_ack, **options)

    request = ConsumerRequest.of(_CLASS, method, method.filter)
    start(channel, request, make, methods.FileConsumeOk)


def cancel(channel: Channel, method: methods.FileCancel) -> None:
    """file.cancel: deliveries in progress are completed."""
    cancel_consumer(channel, method.consumer_tag, method.nowait, methods.FileCancelOk)


def file_open(channel: Channel, method: methods.FileOpen) -> None:
    """file.open: the client wants to send a file."""
    classes_of(channel).arrivals.open(method.identifier, method.content_size)


def open_ok(channel: Channel, method: methods.FileOpenOk) -> None:
    """file.open-ok: the client is ready to receive a file."""
    classes_of(channel).files.opened(method.staged_size)


class StageContent(Content):
    """The content of file.stage, written to the staging area frame by frame.

    Args:
        arrivals: of the channel.
        method: file.stage.

    Raises:
        ProtocolError: 503, no file is open.
    """

    def __init__(self, arrivals: Arrivals, method: methods.FileStage) -> None:
        super().__init__(
            method, arrivals.channel.connection.registry.gauge, (_CLASS, _STAGE), FILE.parse, _done
        )
        self._arrivals = arrivals
        self._staged = arrivals.to_stage()

    def release(self) -> None:
        """End the staging: the content is complete or was dropped."""
        super().release()
        self._arrivals.detach(self._staged)

    def took_header(self, properties: Properties) -> None:
        """Take the properties and the body size."""
        staged = self._staged
        self._arrivals.check_holder(staged)
        if self.size != staged.size - staged.staged:
            raise soft(
                406,
                f"file.stage has {self.size} octets: of the {staged.size} of '{staged.key[2]}' "
                f"{staged.staged} are staged already",
                _CLASS,
                _STAGE,
            )
        self._arrivals.describe(staged, properties.raw)

    def keep(self, payload: bytes) -> None:
        """Write a piece of the body to the staging area."""
        self._arrivals.write(self._staged, payload)


def _done(channel: Channel, content: Content) -> None:
    """Do nothing: `release` has ended the staging."""


def stage(channel: Channel, method: methods.FileStage) -> None:
    """file.stage: its content follows."""
    channel.content = StageContent(classes_of(channel).arrivals, method)
    channel.connection.scanner.pending += 1


def publish(channel: Channel, method: methods.FilePublish) -> None:
    """file.publish: publish a staged file."""
    flags = method.mandatory | method.immediate << 1
    request = Publish(FILE, _PUBLISH, method.exchange, method.routing_key, flags, method.ticket)
    classes_of(channel).arrivals.publish(request, method.identifier)


def _take(channel: Channel, tag: int, multiple: bool, method_id: int) -> list[Unacked]:
    try:
        return channel.take(tag, multiple, method_id)
    except ProtocolError as error:
        # Deliveries of basic and file share their tags; the shared check names class basic.
        error.class_id = _CLASS
        raise


def ack(channel: Channel, method: methods.FileAck) -> None:
    """file.ack: acknowledge deliveries (tag 0 with multiple: all of them)."""
    entries = _take(channel, method.delivery_tag, method.multiple, _ACK)
    if channel.transaction is not None:
        channel.transaction.settle(entries, ACCEPT)
    else:
        channel.take_effect(entries, ACCEPT)


def reject(channel: Channel, method: methods.FileReject) -> None:
    """file.reject: drop the file, or requeue it for other clients."""
    entries = _take(channel, method.delivery_tag, False, _REJECT)
    if not method.requeue:
        kind = REJECT
    else:
        kind = REQUEUE
        for entry in entries:
            # The tag may be that of a basic delivery, which has no such rule.
            if isinstance(entry, FileUnacked):
                entry.refused = True
    if channel.transaction is not None:
        channel.transaction.settle(entries, kind)
    else:
        channel.take_effect(entries, kind)


HANDLERS = {
    methods.FileQos: qos,
    methods.FileConsume: consume,
    methods.FileCancel: cancel,
    methods.FileOpen: file_open,
    methods.FileOpenOk: open_ok,
    methods.FileStage: stage,
    methods.FilePublish: publish,
    methods.FileAck: ack,
    methods.FileReject: reject,
}
