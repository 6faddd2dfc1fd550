# Written by tools/method_stubs.py from the tables.
from datetime import datetime as datetime
from harebell.wire.v010.composites import Composite as Composite
from typing import Any as Any
from uuid import UUID as UUID


class Header(Composite):
    """The header of every command."""

    sync: bool = False

class CommandFragment(Composite):
    """The parts of a command that have arrived."""

    command_id: int = 0
    byte_ranges: tuple[tuple[int, int], ...] = ()

class DeliveryProperties(Composite):
    """Properties for brokers: how to deliver a message."""

    discard_unroutable: bool = False
    immediate: bool = False
    redelivered: bool = False
    priority: int | None = None
    delivery_mode: int | None = None
    ttl: int | None = None
    timestamp: datetime | int | None = None
    expiration: datetime | int | None = None
    exchange: str | None = None
    routing_key: str | None = None
    resume_id: str | None = None
    resume_ttl: int | None = None

class FragmentProperties(Composite):
    """The part of a message in this transfer."""

    first: bool = False
    last: bool = False
    fragment_size: int | None = None

class ReplyTo(Composite):
    """The exchange and routing key for replies."""

    exchange: str | None = None
    routing_key: str | None = None

class MessageProperties(Composite):
    """Properties for applications."""

    content_length: int | None = None
    message_id: UUID | None = None
    correlation_id: bytes | None = None
    reply_to: ReplyTo | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    user_id: bytes | None = None
    app_id: bytes | None = None
    application_headers: dict[str, Any] = {}

class Acquired(Composite):
    """The messages that a peer has acquired."""

    transfers: tuple[tuple[int, int], ...] = ()

class MessageResumeResult(Composite):
    """The offset at which a message is resumed."""

    offset: int | None = None

class XaResult(Composite):
    """The result of an operation on a branch."""

    status: int = 0

class Xid(Composite):
    """The identifier of a transaction branch."""

    format: int = 0
    global_id: bytes = b''
    branch_id: bytes = b''

class GetTimeoutResult(Composite):
    """The timeout of a branch, in seconds."""

    timeout: int = 0

class RecoverResult(Composite):
    """The branches that are prepared or heuristically completed."""

    in_doubt: list[Any] = []

class ExchangeQueryResult(Composite):
    """The result of exchange.query."""

    type: str | None = None
    durable: bool = False
    not_found: bool = False
    arguments: dict[str, Any] = {}

class ExchangeBoundResult(Composite):
    """The result of exchange.bound: what does not exist or match."""

    exchange_not_found: bool = False
    queue_not_found: bool = False
    queue_not_matched: bool = False
    key_not_matched: bool = False
    args_not_matched: bool = False

class QueueQueryResult(Composite):
    """The result of queue.query."""

    queue: str = ''
    alternate_exchange: str | None = None
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    arguments: dict[str, Any] = {}
    message_count: int = 0
    subscriber_count: int = 0

class FileProperties(Composite):
    """The properties of a file message."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: dict[str, Any] = {}
    priority: int | None = None
    reply_to: str | None = None
    message_id: str | None = None
    filename: str | None = None
    timestamp: datetime | int | None = None
    cluster_id: str | None = None

class StreamProperties(Composite):
    """The properties of a stream message."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: dict[str, Any] = {}
    priority: int | None = None
    timestamp: datetime | int | None = None
