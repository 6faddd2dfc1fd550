# Written by tools/method_stubs.py from the tables.
from harebell.wire.v010.composites import Command as Command
from harebell.wire.v010.structs import Xid as Xid
from typing import Any as Any


class ExecutionSync(Command):
    """Wait for the completion of all commands up to this one."""

class ExecutionResult(Command):
    """The result of a command."""

    command_id: int = 0
    value: Any | None = None

class ExecutionException(Command):
    """The error of a command; it ends the session."""

    error_code: int = 0
    command_id: int | None = None
    class_code: int | None = None
    command_code: int | None = None
    field_index: int | None = None
    description: str | None = None
    error_info: dict[str, Any] = {}

class MessageTransfer(Command):
    """Transfer a message, in either direction."""

    destination: str | None = None
    accept_mode: int = 0
    acquire_mode: int = 0

class MessageAccept(Command):
    """Accept messages: the receiver takes responsibility for them."""

    transfers: tuple[tuple[int, int], ...] = ()

class MessageReject(Command):
    """Reject messages that the receiver cannot process."""

    transfers: tuple[tuple[int, int], ...] = ()
    code: int = 0
    text: str | None = None

class MessageRelease(Command):
    """Release messages: the receiver returns them to the queue."""

    transfers: tuple[tuple[int, int], ...] = ()
    set_redelivered: bool = False

class MessageAcquire(Command):
    """Acquire messages that were delivered unacquired."""

    transfers: tuple[tuple[int, int], ...] = ()

class MessageResume(Command):
    """Resume an interrupted transfer."""

    destination: str | None = None
    resume_id: str = ''

class MessageSubscribe(Command):
    """Subscribe to a queue."""

    queue: str = ''
    destination: str | None = None
    accept_mode: int = 0
    acquire_mode: int = 0
    exclusive: bool = False
    resume_id: str | None = None
    resume_ttl: int | None = None
    arguments: dict[str, Any] = {}

class MessageCancel(Command):
    """Cancel a subscription."""

    destination: str = ''

class MessageSetFlowMode(Command):
    """Set the credit mode of a subscription: credit by hand, or a window."""

    destination: str | None = None
    flow_mode: int = 0

class MessageFlow(Command):
    """Add credit."""

    destination: str | None = None
    unit: int = 0
    value: int | None = None

class MessageFlush(Command):
    """Deliver what is ready, then discard the credit."""

    destination: str | None = None

class MessageStop(Command):
    """Discard the credit."""

    destination: str | None = None

class TxSelect(Command):
    """Make publishing and accepting transactional."""

class TxCommit(Command):
    """Commit the transaction."""

class TxRollback(Command):
    """Roll back the transaction."""

class DtxSelect(Command):
    """Make the session use transaction branches."""

class DtxStart(Command):
    """Start work for a branch."""

    xid: Xid = Xid()
    join: bool = False
    resume: bool = False

class DtxEnd(Command):
    """End work for a branch."""

    xid: Xid = Xid()
    fail: bool = False
    suspend: bool = False

class DtxCommit(Command):
    """Commit a branch."""

    xid: Xid = Xid()
    one_phase: bool = False

class DtxForget(Command):
    """Forget a heuristically completed branch."""

    xid: Xid = Xid()

class DtxGetTimeout(Command):
    """Get the timeout of a branch."""

    xid: Xid = Xid()

class DtxPrepare(Command):
    """Prepare a branch for commit."""

    xid: Xid = Xid()

class DtxRecover(Command):
    """List prepared branches."""

class DtxRollback(Command):
    """Roll back a branch."""

    xid: Xid = Xid()

class DtxSetTimeout(Command):
    """Set the timeout of a branch, in seconds."""

    xid: Xid = Xid()
    timeout: int = 0

class ExchangeDeclare(Command):
    """Create an exchange unless it exists."""

    exchange: str = ''
    type: str = ''
    alternate_exchange: str | None = None
    passive: bool = False
    durable: bool = False
    auto_delete: bool = False
    arguments: dict[str, Any] = {}

class ExchangeDelete(Command):
    """Delete an exchange."""

    exchange: str = ''
    if_unused: bool = False

class ExchangeQuery(Command):
    """Query an exchange."""

    name: str | None = None

class ExchangeBind(Command):
    """Bind a queue to an exchange."""

    queue: str = ''
    exchange: str = ''
    binding_key: str = ''
    arguments: dict[str, Any] = {}

class ExchangeUnbind(Command):
    """Remove a binding."""

    queue: str = ''
    exchange: str = ''
    binding_key: str = ''

class ExchangeBound(Command):
    """Query a binding."""

    exchange: str | None = None
    queue: str = ''
    binding_key: str | None = None
    arguments: dict[str, Any] = {}

class QueueDeclare(Command):
    """Create a queue unless it exists."""

    queue: str = ''
    alternate_exchange: str | None = None
    passive: bool = False
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    arguments: dict[str, Any] = {}

class QueueDelete(Command):
    """Delete a queue."""

    queue: str = ''
    if_unused: bool = False
    if_empty: bool = False

class QueuePurge(Command):
    """Remove the messages of a queue that no session has acquired."""

    queue: str = ''

class QueueQuery(Command):
    """Query a queue."""

    queue: str = ''

class FileQos(Command):
    """Set the prefetch limits."""

    prefetch_size: int | None = None
    prefetch_count: int | None = None
    global_: bool = False

class FileQosOk(Command):
    """Confirm file.qos."""

class FileConsume(Command):
    """Subscribe to a queue."""

    queue: str | None = None
    consumer_tag: str | None = None
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    nowait: bool = False
    arguments: dict[str, Any] = {}

class FileConsumeOk(Command):
    """Confirm file.consume, with the consumer tag."""

    consumer_tag: str | None = None

class FileCancel(Command):
    """Cancel a subscription."""

    consumer_tag: str | None = None

class FileOpen(Command):
    """Request to stage a message."""

    identifier: str | None = None
    content_size: int | None = None

class FileOpenOk(Command):
    """Accept the message for staging, from an offset on."""

    staged_size: int | None = None

class FileStage(Command):
    """Send content to the staging area."""

class FilePublish(Command):
    """Publish a message to an exchange."""

    exchange: str | None = None
    routing_key: str | None = None
    mandatory: bool = False
    immediate: bool = False
    identifier: str | None = None

class FileReturn(Command):
    """Return a message."""

    reply_code: int | None = None
    reply_text: str | None = None
    exchange: str | None = None
    routing_key: str | None = None

class FileDeliver(Command):
    """Deliver a message to a consumer."""

    consumer_tag: str | None = None
    delivery_tag: int | None = None
    redelivered: bool = False
    exchange: str | None = None
    routing_key: str | None = None
    identifier: str | None = None

class FileAck(Command):
    """Acknowledge deliveries."""

    delivery_tag: int | None = None
    multiple: bool = False

class FileReject(Command):
    """Reject a delivery."""

    delivery_tag: int | None = None
    requeue: bool = False

class StreamQos(Command):
    """Set the prefetch limits."""

    prefetch_size: int | None = None
    prefetch_count: int | None = None
    consume_rate: int | None = None
    global_: bool = False

class StreamQosOk(Command):
    """Confirm stream.qos."""

class StreamConsume(Command):
    """Subscribe to a queue."""

    queue: str | None = None
    consumer_tag: str | None = None
    no_local: bool = False
    exclusive: bool = False
    nowait: bool = False
    arguments: dict[str, Any] = {}

class StreamConsumeOk(Command):
    """Confirm stream.consume, with the consumer tag."""

    consumer_tag: str | None = None

class StreamCancel(Command):
    """Cancel a subscription."""

    consumer_tag: str | None = None

class StreamPublish(Command):
    """Publish a message to an exchange."""

    exchange: str | None = None
    routing_key: str | None = None
    mandatory: bool = False
    immediate: bool = False

class StreamReturn(Command):
    """Return a message."""

    reply_code: int | None = None
    reply_text: str | None = None
    exchange: str | None = None
    routing_key: str | None = None

class StreamDeliver(Command):
    """Deliver a message to a consumer."""

    consumer_tag: str | None = None
    delivery_tag: int | None = None
    exchange: str | None = None
    queue: str = ''
