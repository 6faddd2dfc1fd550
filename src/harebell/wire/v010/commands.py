"""The commands of AMQP 0-10 as typed values; see `harebell.wire.v010.structs`."""

from __future__ import annotations

from typing import Any

import msgspec

from harebell.wire.v010.structs import Command, Ranges, Table, Xid

# --- execution, class 3 ---------------------------------------------------------------------------


class ExecutionSync(Command):
    """Complete everything up to here, and say so."""


class ExecutionResult(Command):
    """What a command came to."""

    command_id: int = 0
    value: Any = None


class ExecutionException(Command):
    """Why a command failed; the session ends with it."""

    error_code: int = 0
    command_id: int | None = None
    class_code: int | None = None
    command_code: int | None = None
    field_index: int | None = None
    description: str | None = None
    error_info: Table = {}


# --- message, class 4 -----------------------------------------------------------------------------


class MessageTransfer(Command):
    """A message, either way."""

    destination: str | None = None
    accept_mode: int = 0
    acquire_mode: int = 0


class MessageAccept(Command):
    """The receiver takes responsibility for messages."""

    transfers: Ranges = ()


class MessageReject(Command):
    """The receiver cannot process messages."""

    transfers: Ranges = ()
    code: int = 0
    text: str | None = None


class MessageRelease(Command):
    """The receiver gives messages back."""

    transfers: Ranges = ()
    set_redelivered: bool = False


class MessageAcquire(Command):
    """The receiver wants messages for itself that it has seen."""

    transfers: Ranges = ()


class MessageResume(Command):
    """A transfer that broke off goes on."""

    destination: str | None = None
    resume_id: str = ""


class MessageSubscribe(Command):
    """Deliver the messages of a queue."""

    queue: str = ""
    destination: str | None = None
    accept_mode: int = 0
    acquire_mode: int = 0
    exclusive: bool = False
    resume_id: str | None = None
    resume_ttl: int | None = None
    arguments: Table = {}


class MessageCancel(Command):
    """Deliver them no more."""

    destination: str = ""


class MessageSetFlowMode(Command):
    """How credit comes back: by hand or as deliveries complete."""

    destination: str | None = None
    flow_mode: int = 0


class MessageFlow(Command):
    """More credit."""

    destination: str | None = None
    unit: int = 0
    value: int | None = None


class MessageFlush(Command):
    """Deliver what there is, then forget the credit."""

    destination: str | None = None


class MessageStop(Command):
    """Forget the credit."""

    destination: str | None = None


# --- tx, class 5 ----------------------------------------------------------------------------------


class TxSelect(Command):
    """Publishing and accepting is transactional from now on."""


class TxCommit(Command):
    """Make it happen, all of it."""


class TxRollback(Command):
    """Make nothing of it happen."""


# --- dtx, class 6 ---------------------------------------------------------------------------------


class DtxSelect(Command):
    """Work belongs to transaction branches from now on."""


class DtxStart(Command):
    """Work for a branch begins."""

    xid: Xid = msgspec.field(default_factory=Xid)
    join: bool = False
    resume: bool = False


class DtxEnd(Command):
    """Work for a branch ends."""

    xid: Xid = msgspec.field(default_factory=Xid)
    fail: bool = False
    suspend: bool = False


class DtxCommit(Command):
    """Make a branch happen."""

    xid: Xid = msgspec.field(default_factory=Xid)
    one_phase: bool = False


class DtxForget(Command):
    """Forget a branch that was decided without asking."""

    xid: Xid = msgspec.field(default_factory=Xid)


class DtxGetTimeout(Command):
    """How long may a branch take?"""

    xid: Xid = msgspec.field(default_factory=Xid)


class DtxPrepare(Command):
    """Be ready to make a branch happen, whatever comes."""

    xid: Xid = msgspec.field(default_factory=Xid)


class DtxRecover(Command):
    """Which branches are prepared?"""


class DtxRollback(Command):
    """Make nothing of a branch happen."""

    xid: Xid = msgspec.field(default_factory=Xid)


class DtxSetTimeout(Command):
    """How long a branch may take, in seconds."""

    xid: Xid = msgspec.field(default_factory=Xid)
    timeout: int = 0


# --- exchange, class 7 ----------------------------------------------------------------------------


class ExchangeDeclare(Command):
    """Create an exchange unless it exists."""

    exchange: str = ""
    type: str = ""
    alternate_exchange: str | None = None
    passive: bool = False
    durable: bool = False
    auto_delete: bool = False
    arguments: Table = {}


class ExchangeDelete(Command):
    """Delete an exchange."""

    exchange: str = ""
    if_unused: bool = False


class ExchangeQuery(Command):
    """What is an exchange like?"""

    name: str | None = None


class ExchangeBind(Command):
    """Bind a queue to an exchange."""

    queue: str = ""
    exchange: str = ""
    binding_key: str = ""
    arguments: Table = {}


class ExchangeUnbind(Command):
    """Take a binding away."""

    queue: str = ""
    exchange: str = ""
    binding_key: str = ""


class ExchangeBound(Command):
    """Does a binding exist?"""

    exchange: str | None = None
    queue: str = ""
    binding_key: str | None = None
    arguments: Table = {}


# --- queue, class 8 -------------------------------------------------------------------------------


class QueueDeclare(Command):
    """Create a queue unless it exists."""

    queue: str = ""
    alternate_exchange: str | None = None
    passive: bool = False
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Table = {}


class QueueDelete(Command):
    """Delete a queue."""

    queue: str = ""
    if_unused: bool = False
    if_empty: bool = False


class QueuePurge(Command):
    """Drop the messages of a queue that no session has acquired."""

    queue: str = ""


class QueueQuery(Command):
    """What is a queue like?"""

    queue: str = ""


# --- file, class 9 --------------------------------------------------------------------------------


class FileQos(Command):
    """How much may be delivered ahead."""

    prefetch_size: int | None = None
    prefetch_count: int | None = None
    global_: bool = False


class FileQosOk(Command):
    """It will be so."""


class FileConsume(Command):
    """Deliver the messages of a queue."""

    queue: str | None = None
    consumer_tag: str | None = None
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    nowait: bool = False
    arguments: Table = {}


class FileConsumeOk(Command):
    """The consumer, and its tag."""

    consumer_tag: str | None = None


class FileCancel(Command):
    """Deliver them no more."""

    consumer_tag: str | None = None


class FileOpen(Command):
    """A message is to be staged."""

    identifier: str | None = None
    content_size: int | None = None


class FileOpenOk(Command):
    """Stage it, from there on."""

    staged_size: int | None = None


class FileStage(Command):
    """Content for the staging area."""


class FilePublish(Command):
    """A message for an exchange."""

    exchange: str | None = None
    routing_key: str | None = None
    mandatory: bool = False
    immediate: bool = False
    identifier: str | None = None


class FileReturn(Command):
    """A message comes back."""

    reply_code: int | None = None
    reply_text: str | None = None
    exchange: str | None = None
    routing_key: str | None = None


class FileDeliver(Command):
    """A message for a consumer."""

    consumer_tag: str | None = None
    delivery_tag: int | None = None
    redelivered: bool = False
    exchange: str | None = None
    routing_key: str | None = None
    identifier: str | None = None


class FileAck(Command):
    """The receiver has dealt with deliveries."""

    delivery_tag: int | None = None
    multiple: bool = False


class FileReject(Command):
    """The receiver does not want a delivery."""

    delivery_tag: int | None = None
    requeue: bool = False


# --- stream, class 10 -----------------------------------------------------------------------------


class StreamQos(Command):
    """How much may be delivered ahead."""

    prefetch_size: int | None = None
    prefetch_count: int | None = None
    consume_rate: int | None = None
    global_: bool = False


class StreamQosOk(Command):
    """It will be so."""


class StreamConsume(Command):
    """Deliver the messages of a queue."""

    queue: str | None = None
    consumer_tag: str | None = None
    no_local: bool = False
    exclusive: bool = False
    nowait: bool = False
    arguments: Table = {}


class StreamConsumeOk(Command):
    """The consumer, and its tag."""

    consumer_tag: str | None = None


class StreamCancel(Command):
    """Deliver them no more."""

    consumer_tag: str | None = None


class StreamPublish(Command):
    """A message for an exchange."""

    exchange: str | None = None
    routing_key: str | None = None
    mandatory: bool = False
    immediate: bool = False


class StreamReturn(Command):
    """A message comes back."""

    reply_code: int | None = None
    reply_text: str | None = None
    exchange: str | None = None
    routing_key: str | None = None


class StreamDeliver(Command):
    """A message for a consumer."""

    consumer_tag: str | None = None
    delivery_tag: int | None = None
    exchange: str | None = None
    queue: str = ""
