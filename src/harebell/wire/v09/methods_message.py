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
    """End a consumer."""

    destination: str = ""


class MessageGet(Method):
    """Ask for one message."""

    queue: str = ""
    destination: str = ""
    no_ack: bool = False
    ticket: int = 0


class MessageRecover(Method):
    """Deliver what is not acknowledged once more."""

    requeue: bool = False


class MessageOpen(Method):
    """Begin a body that comes in pieces."""

    reference: bytes = b""


class MessageClose(Method):
    """The body is whole; its reference is free again."""

    reference: bytes = b""


class MessageAppend(Method):
    """The next piece of a body."""

    reference: bytes = b""
    octets: bytes = b""


class MessageCheckpoint(Method):
    """Mark a place in a body, to go on from when the session is broken."""

    reference: bytes = b""
    identifier: str = ""


class MessageResume(Method):
    """Go on with a body from its last mark."""

    reference: bytes = b""
    identifier: str = ""


class MessageQos(Method):
    """How much may be delivered ahead of acknowledgements."""

    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False


class MessageEmpty(Method):
    """There is no message to get."""


class MessageReject(Method):
    """Messages are not wanted."""

    code: int = 0
    text: str = ""


class MessageOffset(Method):
    """How many octets of a body have arrived."""

    value: int = 0
