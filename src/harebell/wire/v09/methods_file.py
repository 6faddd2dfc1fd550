"""The methods of class `file` as typed values; see `harebell.wire.v09.methods`.

The class is one of 0-8, 0-9 and transitional 0-10: messages that are staged at the recipient, in
parts if a connection breaks, before they are published or delivered by the name of their staging.
"""

from __future__ import annotations

from harebell.wire.v09.method import Method, Table


class FileQos(Method):
    """Limit the unacknowledged deliveries (prefetch); 0 is no limit."""

    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False


class FileQosOk(Method):
    """The limits apply."""


class FileConsume(Method):
    """Start a consumer of files."""

    queue: str = ""
    consumer_tag: str = ""
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    nowait: bool = False
    filter: Table = {}
    ticket: int = 0


class FileConsumeOk(Method):
    """The consumer has started."""

    consumer_tag: str = ""


class FileCancel(Method):
    """Cancel a consumer of files."""

    consumer_tag: str = ""
    nowait: bool = False


class FileCancelOk(Method):
    """The consumer is cancelled."""

    consumer_tag: str = ""


class FileOpen(Method):
    """Ask how much of a file the recipient has already."""

    identifier: str = ""
    content_size: int = 0


class FileOpenOk(Method):
    """The offset from which on the file is to be sent."""

    staged_size: int = 0


class FileStage(Method):
    """Send the file, or the rest of it, as content."""


class FilePublish(Method):
    """Publish a staged file."""

    exchange: str = ""
    routing_key: str = ""
    mandatory: bool = False
    immediate: bool = False
    identifier: str = ""
    ticket: int = 0


class FileReturn(Method):
    """Return a file that was unroutable or not delivered, with its content."""

    reply_code: int = 0
    reply_text: str = ""
    exchange: str = ""
    routing_key: str = ""


class FileDeliver(Method):
    """Deliver a file that was staged at the client to a consumer."""

    consumer_tag: str = ""
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""
    identifier: str = ""


class FileAck(Method):
    """Acknowledge deliveries of files."""

    delivery_tag: int = 0
    multiple: bool = False


class FileReject(Method):
    """Reject a delivery of a file."""

    delivery_tag: int = 0
    requeue: bool = False
