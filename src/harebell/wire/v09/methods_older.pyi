# Written by tools/method_stubs.py from the tables.
from harebell.wire.v09.method import Method as Method
from typing import Any as Any


class ConnectionRedirect(Method):
    """Refer the client to another server (before 0-9-1)."""

    host: str = ''
    known_hosts: str = ''

class ChannelAlert(Method):
    """Warn of an error that does not close the channel (0-8)."""

    reply_code: int = 0
    reply_text: str = ''
    details: dict[str, Any] = {}

class ExchangeBound(Method):
    """Ask whether an exchange has a binding, with the given queue and key if any (Qpid)."""

    exchange: str = ''
    routing_key: str = ''
    queue: str = ''

class ExchangeBoundOk(Method):
    """Code 0 if it has; other codes say what is missing (Qpid)."""

    reply_code: int = 0
    reply_text: str = ''

class FileQos(Method):
    """Limit the unacknowledged deliveries (prefetch); 0 is no limit."""

    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False

class FileQosOk(Method):
    """The limits apply."""

class FileConsume(Method):
    """Start a consumer of files."""

    queue: str = ''
    consumer_tag: str = ''
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    nowait: bool = False
    filter: dict[str, Any] = {}
    ticket: int = 0

class FileConsumeOk(Method):
    """The consumer has started."""

    consumer_tag: str = ''

class FileCancel(Method):
    """Cancel a consumer of files."""

    consumer_tag: str = ''
    nowait: bool = False

class FileCancelOk(Method):
    """The consumer is cancelled."""

    consumer_tag: str = ''

class FileOpen(Method):
    """Ask how much of a file the recipient has already."""

    identifier: str = ''
    content_size: int = 0

class FileOpenOk(Method):
    """The offset from which on the file is to be sent."""

    staged_size: int = 0

class FileStage(Method):
    """Send the file, or the rest of it, as content."""

class FilePublish(Method):
    """Publish a staged file."""

    exchange: str = ''
    routing_key: str = ''
    mandatory: bool = False
    immediate: bool = False
    identifier: str = ''
    ticket: int = 0

class FileReturn(Method):
    """Return a file that was unroutable or not delivered, with its content."""

    reply_code: int = 0
    reply_text: str = ''
    exchange: str = ''
    routing_key: str = ''

class FileDeliver(Method):
    """Deliver a file that was staged at the client to a consumer."""

    consumer_tag: str = ''
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ''
    routing_key: str = ''
    identifier: str = ''

class FileAck(Method):
    """Acknowledge deliveries of files."""

    delivery_tag: int = 0
    multiple: bool = False

class FileReject(Method):
    """Reject a delivery of a file."""

    delivery_tag: int = 0
    requeue: bool = False

class StreamQos(Method):
    """Limit what is queued for a consumer, and its octets per second; 0 is no limit."""

    prefetch_size: int = 0
    prefetch_count: int = 0
    consume_rate: int = 0
    global_: bool = False

class StreamQosOk(Method):
    """The limits apply."""

class StreamConsume(Method):
    """Start a consumer of packets."""

    queue: str = ''
    consumer_tag: str = ''
    no_local: bool = False
    exclusive: bool = False
    nowait: bool = False
    filter: dict[str, Any] = {}
    ticket: int = 0

class StreamConsumeOk(Method):
    """The consumer has started."""

    consumer_tag: str = ''

class StreamCancel(Method):
    """Cancel a consumer of packets."""

    consumer_tag: str = ''
    nowait: bool = False

class StreamCancelOk(Method):
    """The consumer is cancelled."""

    consumer_tag: str = ''

class StreamPublish(Method):
    """Publish a packet; its content follows."""

    exchange: str = ''
    routing_key: str = ''
    mandatory: bool = False
    immediate: bool = False
    ticket: int = 0

class StreamReturn(Method):
    """Return a packet that was unroutable or not delivered, with its content."""

    reply_code: int = 0
    reply_text: str = ''
    exchange: str = ''
    routing_key: str = ''

class StreamDeliver(Method):
    """Deliver a packet to a consumer; its content follows."""

    consumer_tag: str = ''
    delivery_tag: int = 0
    exchange: str = ''
    queue: str = ''

class DtxSelect(Method):
    """Put the channel into the mode of distributed transactions."""

class DtxSelectOk(Method):
    """The channel is in this mode."""

class DtxStart(Method):
    """Begin work on a transaction: what follows on the channel is part of it."""

    dtx_identifier: str = ''

class DtxStartOk(Method):
    """The transaction has started."""

class TunnelRequest(Method):
    """Send a block of another protocol as content, with metadata for its recipient."""

    meta_data: dict[str, Any] = {}

class TestInteger(Method):
    """Ask for the sum, the minimum or the maximum of four integers."""

    integer_1: int = 0
    integer_2: int = 0
    integer_3: int = 0
    integer_4: int = 0
    operation: int = 0

class TestIntegerOk(Method):
    """The result."""

    result: int = 0

class TestString(Method):
    """Ask for two strings concatenated, the shorter or the longer of them."""

    string_1: str = ''
    string_2: bytes = b''
    operation: int = 0

class TestStringOk(Method):
    """The result."""

    result: bytes = b''

class TestTable(Method):
    """Ask for the same of the integers, and of the strings, in a field table."""

    table: dict[str, Any] = {}
    integer_op: int = 0
    string_op: int = 0

class TestTableOk(Method):
    """Both results."""

    integer_result: int = 0
    string_result: bytes = b''

class TestContent(Method):
    """Send content, and ask for its checksum."""

class TestContentOk(Method):
    """The sum of the content's octets, with the same content."""

    content_checksum: int = 0

class ChannelResume(Method):
    """Resume a channel of a connection that broke (0-9)."""

    channel_id: bytes = b''

class ChannelPing(Method):
    """Ask for a pong (0-9)."""

class ChannelPong(Method):
    """Answer a ping (0-9)."""

class ChannelOk(Method):
    """The answer to resume, ping and pong (0-9)."""

class BasicRecoverSyncOk(Method):
    """Unacknowledged messages are delivered again from now on (Qpid's 0-9)."""

class BasicRecoverSync(Method):
    """Deliver unacknowledged messages again, with a reply (Qpid's 0-9)."""

    requeue: bool = False
