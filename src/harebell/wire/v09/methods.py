"""The methods as typed values, so that the front and the client never touch an octet.

One class per method, named after it: `queue.declare-ok` is `QueueDeclareOk`. The attributes are
the specification's fields with underscores, in its order; `no-wait` is `nowait`, `global` is
`global_`. Reserved fields are no attributes: the tables of the versions know where they stand. A
version that lacks a field leaves the attribute at its default.

The classes are written out, and not made from the tables when they are loaded, so that editors and
type checkers know the fields. `ProtocolSpec` refuses a table that does not fit its classes.
"""

from __future__ import annotations

from harebell.wire.v09.method import METHODS as METHODS
from harebell.wire.v09.method import Method as Method
from harebell.wire.v09.method import Table

# --- connection, class 10 -----------------------------------------------------------------------


class ConnectionStart(Method):
    """The server states its properties and offers SASL mechanisms, separated by spaces."""

    version_major: int = 0
    version_minor: int = 9
    server_properties: Table = {}
    mechanisms: bytes = b""
    locales: bytes = b""


class ConnectionStartOk(Method):
    """The client states its properties and chooses a SASL mechanism."""

    client_properties: Table = {}
    mechanism: str = ""
    response: bytes = b""
    locale: str = ""


class ConnectionSecure(Method):
    """The next challenge of the SASL mechanism."""

    challenge: bytes = b""


class ConnectionSecureOk(Method):
    """The client's response to the challenge."""

    response: bytes = b""


class ConnectionTune(Method):
    """The limits that the server offers; 0 is no limit."""

    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0


class ConnectionTuneOk(Method):
    """The limits that the client chooses."""

    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0


class ConnectionOpen(Method):
    """The client chooses a virtual host."""

    virtual_host: str = "/"
    capabilities: str = ""
    insist: bool = False


class ConnectionOpenOk(Method):
    """The connection is open."""

    known_hosts: str = ""


class ConnectionRedirect(Method):
    """Refer the client to another server (before 0-9-1)."""

    host: str = ""
    known_hosts: str = ""


class ConnectionClose(Method):
    """Close the connection; class and method say what failed, or are 0."""

    reply_code: int = 200
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0


class ConnectionCloseOk(Method):
    """The connection is closed; this is the last frame."""


class ConnectionBlocked(Method):
    """The server blocks publishers (RabbitMQ)."""

    reason: str = ""


class ConnectionUnblocked(Method):
    """The server does not block publishers any more (RabbitMQ)."""


class ConnectionUpdateSecret(Method):
    """The client renews the credentials of a running connection (RabbitMQ)."""

    new_secret: bytes = b""
    reason: str = ""


class ConnectionUpdateSecretOk(Method):
    """The server has accepted the new credentials (RabbitMQ)."""


# --- channel, class 20 --------------------------------------------------------------------------


class ChannelOpen(Method):
    """Open the channel of the frame."""


class ChannelOpenOk(Method):
    """The channel is open."""


class ChannelFlow(Method):
    """Ask the peer to stop sending content, or to continue."""

    active: bool = False


class ChannelFlowOk(Method):
    """Whether the peer sends content now."""

    active: bool = False


class ChannelClose(Method):
    """Close the channel; class and method say what failed, or are 0."""

    reply_code: int = 200
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0


class ChannelCloseOk(Method):
    """The channel is closed, and its number is free."""


# --- access, class 30 (gone from 0-9-1, still answered) -----------------------------------------


class AccessRequest(Method):
    """Ask for an access ticket (before 0-9-1; still accepted)."""

    realm: str = "/data"
    exclusive: bool = False
    passive: bool = True
    active: bool = True
    write: bool = True
    read: bool = True


class AccessRequestOk(Method):
    """The ticket. In 0-9-1 nothing checks it."""

    ticket: int = 1


# --- exchange, class 40 -------------------------------------------------------------------------


class ExchangeDeclare(Method):
    """Declare an exchange; with `passive` only check that it exists."""

    exchange: str = ""
    type: str = "direct"
    passive: bool = False
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    nowait: bool = False
    arguments: Table = {}
    alternate_exchange: str = ""
    ticket: int = 0


class ExchangeDeclareOk(Method):
    """The exchange exists."""


class ExchangeDelete(Method):
    """Delete an exchange and its bindings."""

    exchange: str = ""
    if_unused: bool = False
    nowait: bool = False
    ticket: int = 0


class ExchangeDeleteOk(Method):
    """The exchange is deleted."""


class ExchangeBind(Method):
    """Bind the destination exchange to the source exchange (RabbitMQ)."""

    destination: str = ""
    source: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = {}


class ExchangeBindOk(Method):
    """The binding exists (RabbitMQ)."""


class ExchangeUnbind(Method):
    """Remove a binding between exchanges (RabbitMQ)."""

    destination: str = ""
    source: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = {}


class ExchangeUnbindOk(Method):
    """The binding is removed (RabbitMQ)."""


# --- queue, class 50 ----------------------------------------------------------------------------


class QueueDeclare(Method):
    """Declare a queue, or with `passive` check that it exists; "" lets the server name it."""

    queue: str = ""
    passive: bool = False
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    nowait: bool = False
    arguments: Table = {}
    alternate_exchange: str = ""
    ticket: int = 0


class QueueDeclareOk(Method):
    """The queue exists; the numbers of its ready messages and consumers."""

    queue: str = ""
    message_count: int = 0
    consumer_count: int = 0


class QueueBind(Method):
    """Bind a queue to an exchange."""

    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = {}
    ticket: int = 0


class QueueBindOk(Method):
    """The binding exists."""


class QueueUnbind(Method):
    """Remove a binding."""

    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    arguments: Table = {}
    ticket: int = 0


class QueueUnbindOk(Method):
    """The binding is removed."""


class QueuePurge(Method):
    """Remove the ready messages of a queue."""

    queue: str = ""
    nowait: bool = False
    ticket: int = 0


class QueuePurgeOk(Method):
    """The number of removed messages."""

    message_count: int = 0


class QueueDelete(Method):
    """Delete a queue with its messages."""

    queue: str = ""
    if_unused: bool = False
    if_empty: bool = False
    nowait: bool = False
    ticket: int = 0


class QueueDeleteOk(Method):
    """The number of messages that were deleted with it."""

    message_count: int = 0


# --- basic, class 60 ----------------------------------------------------------------------------


class BasicQos(Method):
    """Limit the unacknowledged messages (prefetch)."""

    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False


class BasicQosOk(Method):
    """The limit applies."""


class BasicConsume(Method):
    """Start a consumer; "" lets the server choose its tag."""

    queue: str = ""
    consumer_tag: str = ""
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    nowait: bool = False
    arguments: Table = {}
    ticket: int = 0


class BasicConsumeOk(Method):
    """The consumer has started."""

    consumer_tag: str = ""


class BasicCancel(Method):
    """Cancel a consumer; from the server: its queue was deleted (RabbitMQ)."""

    consumer_tag: str = ""
    nowait: bool = False


class BasicCancelOk(Method):
    """The consumer is cancelled."""

    consumer_tag: str = ""


class BasicPublish(Method):
    """Publish a message to an exchange; its content follows."""

    exchange: str = ""
    routing_key: str = ""
    mandatory: bool = False
    immediate: bool = False
    ticket: int = 0


class BasicReturn(Method):
    """Return an unroutable message; its content follows."""

    reply_code: int = 312
    reply_text: str = "NO_ROUTE"
    exchange: str = ""
    routing_key: str = ""


class BasicDeliver(Method):
    """Deliver a message to a consumer; its content follows."""

    consumer_tag: str = ""
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""


class BasicGet(Method):
    """Get one message from a queue."""

    queue: str = ""
    no_ack: bool = False
    ticket: int = 0


class BasicGetOk(Method):
    """The message; its content follows."""

    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""
    message_count: int = 0


class BasicGetEmpty(Method):
    """The queue is empty."""


class BasicAck(Method):
    """Acknowledge deliveries; from the server: confirm publishes (RabbitMQ)."""

    delivery_tag: int = 0
    multiple: bool = False


class BasicReject(Method):
    """Reject a delivery."""

    delivery_tag: int = 0
    requeue: bool = False


class BasicRecoverAsync(Method):
    """Deliver unacknowledged messages again, without a reply."""

    requeue: bool = False


class BasicRecover(Method):
    """Deliver unacknowledged messages again."""

    requeue: bool = False


class BasicRecoverOk(Method):
    """Unacknowledged messages are delivered again from now on."""


class BasicNack(Method):
    """Reject deliveries; from the server: publishes failed (RabbitMQ)."""

    delivery_tag: int = 0
    multiple: bool = False
    requeue: bool = False


# --- confirm, class 85 (RabbitMQ), and tx, class 90 ---------------------------------------------


class ConfirmSelect(Method):
    """Confirm publishes on this channel from now on (RabbitMQ)."""

    nowait: bool = False


class ConfirmSelectOk(Method):
    """Publishes are confirmed; the next one has number 1 (RabbitMQ)."""


class TxSelect(Method):
    """Put the channel into transaction mode, and begin a transaction."""


class TxSelectOk(Method):
    """A transaction has begun."""


class TxCommit(Method):
    """Carry out the transaction's publishes and acknowledgements."""


class TxCommitOk(Method):
    """The transaction is committed, and the next one has begun."""


class TxRollback(Method):
    """Discard the transaction's publishes and acknowledgements."""


class TxRollbackOk(Method):
    """The transaction is rolled back, and the next one has begun."""
