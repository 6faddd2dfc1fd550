"""The structs of AMQP 0-10 as typed values, and what structs, controls and commands have in common.

An attribute that is None, or an empty map, array or set, is not sent. A required field that a peer
leaves out reads as zero or empty, which is how brokers have always taken it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

import msgspec

Table = dict[str, Any]
Ranges = tuple[tuple[int, int], ...]
"""First and last number of each range."""

COMPOSITES: dict[str, type[Composite]] = {}
"""Every struct, control and command by the name of its class."""


class Composite(msgspec.Struct):
    """A struct, a control or a command. `NAME` is its name on paper: `message.transfer`."""

    NAME: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        COMPOSITES[cls.__name__] = cls


class Control(Composite):
    """What passes between two session or connection ends, and is not counted."""


class Command(Composite):
    """What a session counts, completes and perhaps repeats."""


class SessionHeader(Composite):
    """What stands in front of every command."""

    sync: bool = False


class CommandFragment(Composite):
    """Parts of a command that arrived."""

    command_id: int = 0
    byte_ranges: Ranges = ()


class DeliveryProperties(Composite):
    """How a message is to be delivered: for brokers."""

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
    """Which part of a message this is."""

    first: bool = False
    last: bool = False
    fragment_size: int | None = None


class ReplyTo(Composite):
    """Where replies go."""

    exchange: str | None = None
    routing_key: str | None = None


class MessageProperties(Composite):
    """What a message is: from application to application."""

    content_length: int | None = None
    message_id: UUID | None = None
    correlation_id: bytes | None = None
    reply_to: ReplyTo | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    user_id: bytes | None = None
    app_id: bytes | None = None
    application_headers: Table = {}


class Acquired(Composite):
    """Which messages a peer acquired."""

    transfers: Ranges = ()


class MessageResumeResult(Composite):
    """From where on a message is resumed."""

    offset: int | None = None


class XaResult(Composite):
    """How a branch fared."""

    status: int = 0


class Xid(Composite):
    """The name of a transaction branch."""

    format: int = 0
    global_id: bytes = b""
    branch_id: bytes = b""


class GetTimeoutResult(Composite):
    """How long a branch may take, in seconds."""

    timeout: int = 0


class RecoverResult(Composite):
    """The branches that are prepared or were decided without asking."""

    in_doubt: list[Any] = []


class ExchangeQueryResult(Composite):
    """What an exchange is like."""

    type: str | None = None
    durable: bool = False
    not_found: bool = False
    arguments: Table = {}


class ExchangeBoundResult(Composite):
    """What of a binding does not exist."""

    exchange_not_found: bool = False
    queue_not_found: bool = False
    queue_not_matched: bool = False
    key_not_matched: bool = False
    args_not_matched: bool = False


class QueueQueryResult(Composite):
    """What a queue is like."""

    queue: str = ""
    alternate_exchange: str | None = None
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Table = {}
    message_count: int = 0
    subscriber_count: int = 0


class FileProperties(Composite):
    """What a file message is."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Table = {}
    priority: int | None = None
    reply_to: str | None = None
    message_id: str | None = None
    filename: str | None = None
    timestamp: datetime | int | None = None
    cluster_id: str | None = None


class StreamProperties(Composite):
    """What a stream message is."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Table = {}
    priority: int | None = None
    timestamp: datetime | int | None = None
