"""The class file (AMQP 0-10, class 9): files that are staged before they are delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_10.errors import (
    ILLEGAL_ARGUMENT,
    NOT_ALLOWED,
    PRECONDITION_FAILED,
    ExecutionError,
)
from harebell.front.amqp_0_10.file_stage import Stage
from harebell.front.amqp_0_10.file_stream_adapter import FileStreamAdapter, adapter_of
from harebell.front.file_stream.classes import shared_of
from harebell.front.file_stream.consuming import ConsumerRequest, start
from harebell.front.file_stream.consuming import cancel as cancel_consumer
from harebell.front.file_stream.file_consumer import FileConsumer, FileUnacked
from harebell.front.file_stream.publishing import Publish
from harebell.model.queue.contract import PENDING, Queue
from harebell.model.transaction import ACCEPT
from harebell.wire.v010 import commands
from harebell.wire.v09.methods_older import FileConsumeOk
from harebell.wire.v09.property_list import FILE

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.session import Session

_PUBLISH = 9


def qos(session: Session, command: commands.FileQos) -> None:
    """file.qos: for the session, or with `global` for the connection as a whole."""
    lane = adapter_of(session).classes.files
    window = shared_of(session.connection).files if command.global_ else lane.window
    window.limit(command.prefetch_count or 0, command.prefetch_size or 0)
    session.send(commands.FileQosOk())
    lane.go_on()


def request_of(class_id: int, command: Any) -> ConsumerRequest:
    """Return the request of a command consume of either class.

    Raises:
        ExecutionError: 530, the consumer has no tag.
    """
    if not command.consumer_tag:
        raise ExecutionError(NOT_ALLOWED, "the consumer tag is empty", 1)
    return ConsumerRequest.of(class_id, command, command.arguments)


def consume(session: Session, command: commands.FileConsume) -> None:
    """file.consume: files are staged one by one."""
    adapter = adapter_of(session)

    def make(queue: Queue, tag: str, options: dict[str, Any]) -> FileConsumer:
        return FileConsumer(adapter.classes.files, queue, tag, automatic=command.no_ack, **options)

    start(adapter, request_of(FILE.class_id, command), make, FileConsumeOk)


def cancel(session: Session, command: commands.FileCancel) -> None:
    """file.cancel: deliveries in progress are completed; an unknown tag is ignored."""
    tag = command.consumer_tag or ""
    if isinstance(session.consumers.get(tag), FileConsumer):
        cancel_consumer(adapter_of(session), tag, True, FileConsumeOk)


def _identifier(command: Any) -> str:
    if not command.identifier:
        raise ExecutionError(ILLEGAL_ARGUMENT, f"{command.NAME} has no identifier")
    return str(command.identifier)


def file_open(session: Session, command: commands.FileOpen) -> None:
    """file.open: the client wants to send a file."""
    arrivals = adapter_of(session).classes.arrivals
    arrivals.open(_identifier(command), command.content_size or 0)


def open_ok(session: Session, command: commands.FileOpenOk) -> None:
    """file.open-ok: the client is ready to receive a file."""
    adapter_of(session).classes.files.opened(command.staged_size or 0)


def stage(session: Session, command: commands.FileStage, header: bytes, body: bytes) -> None:
    """file.stage: no-op, because the body is already in the staging area."""
    adapter = adapter_of(session)
    received, adapter.stage = adapter.stage, None
    # Without a body segment nothing has begun the stage.
    (received or Stage(adapter, header)).finish()


def publish(session: Session, command: commands.FilePublish) -> None:
    """file.publish: publish a staged file; complete when the message is on disk."""
    flags = command.mandatory | command.immediate << 1
    request = Publish(FILE, _PUBLISH, command.exchange or "", command.routing_key or "", flags)
    adapter_of(session).classes.arrivals.publish(request, _identifier(command))


def _taken(
    session: Session, tag: int, multiple: bool
) -> tuple[FileStreamAdapter, list[FileUnacked]]:
    """Remove and return the deliveries that a tag selects."""
    adapter = adapter_of(session)
    unacked = adapter.unacked
    if tag or not multiple:
        delivery = unacked.get(tag)
        if delivery is None:
            raise ExecutionError(PRECONDITION_FAILED, f"unknown delivery tag {tag}", 0)
    last = tag or adapter.next_tag - 1
    tags = [each for each in unacked.numbers() if each <= last] if multiple else [tag]
    return adapter, [unacked.take(each) for each in tags]


def ack(session: Session, command: commands.FileAck) -> None:
    """file.ack: acknowledge files (tag 0 with multiple: all of them)."""
    _, entries = _taken(session, command.delivery_tag or 0, command.multiple)
    transaction: Any = session.transaction
    if transaction is not None:
        transaction.settle(entries, ACCEPT)
    else:
        session.settle(entries)


def reject(session: Session, command: commands.FileReject) -> None:
    """file.reject: drop the file, or requeue it for other clients; at once, as message.reject."""
    _, entries = _taken(session, command.delivery_tag or 0, False)
    result = 0
    for entry in entries:
        if command.requeue:
            entry.refused = True
            entry.requeue()
        else:
            entry.reject()
        if not entry.queue.deleted:
            result |= entry.queue.sync_soon()
            entry.queue.drain()
    if result & PENDING:
        session.wait_for(session.connection.commit.ticket)


COMMANDS: dict[type, Any] = {
    commands.FileQos: qos,
    commands.FileConsume: consume,
    commands.FileCancel: cancel,
    commands.FileOpen: file_open,
    commands.FileOpenOk: open_ok,
    commands.FilePublish: publish,
    commands.FileAck: ack,
    commands.FileReject: reject,
}
CONTENT_COMMANDS: dict[type, Any] = {commands.FileStage: stage}
