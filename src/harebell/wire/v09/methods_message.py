"""The class message of transitional 0-10. See `harebell.wire.v09.methods`."""

from __future__ import annotations

from datetime import datetime

from harebell.wire.v09.method import Method, Table
from harebell.wire.v09.transitional_types import INLINE, Body


class MessageTransfer(Method):
    """A message, whole or by reference to its body, in either direction.

    `mandatory` is the field reject-unroutable.
    """

    ticket: int = 0
    destination: str = ""
    redelivered: bool = False
    mandatory: bool = False
    immediate: bool = False
    ttl: int = 0
    priority: int = 0
    timestamp: datetime | int = 0
    delivery_mode: int = 0
    expiration: datetime | int = 0
    exchange: str = ""
    routing_key: str = ""
    message_id: str = ""
    correlation_id: str = ""
    reply_to: str = ""
    content_type: str = ""
    content_encoding: str = ""
    content_length: int = 0
    type: str = ""
    user_id: str = ""
    app_id: str = ""
    transaction_id: str = ""
    security_token: bytes = b""
    application_headers: Table = {}
    body: Body = Body(INLINE, b"")


class MessageConsume(Method):
    """Start a consumer, which is named by its destination."""

    queue: str = ""
    destination: str = ""
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    filter: Table = {}
    ticket: int = 0


class MessageCancel(Method):
    """Cancel a consumer."""

    destination: str = ""


class MessageGet(Method):
    """Get one message from a queue."""

    queue: str = ""
    destination: str = ""
    no_ack: bool = False
    ticket: int = 0


class MessageRecover(Method):
    """Deliver unacknowledged messages again."""

    requeue: bool = False


class MessageOpen(Method):
    """Begin a body that is sent in pieces, under a reference."""

    reference: bytes = b""


class MessageClose(Method):
    """End a body; its reference is free again."""

    reference: bytes = b""


class MessageAppend(Method):
    """The next piece of a body."""

    reference: bytes = b""
    octets: bytes = b""


class MessageCheckpoint(Method):
    """Mark an offset in a body, to resume from if the session breaks."""

    reference: bytes = b""
    identifier: str = ""


class MessageResume(Method):
    """Resume a body from its last mark."""

    reference: bytes = b""
    identifier: str = ""


class MessageQos(Method):
    """Limit the unacknowledged messages (prefetch)."""

    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False


class MessageEmpty(Method):
    """The queue is empty."""


class MessageReject(Method):
    """Reject messages."""

    code: int = 0
    text: str = ""


class MessageOffset(Method):
    """The number of octets of a body that have arrived."""

    value: int = 0
