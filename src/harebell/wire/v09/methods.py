"""The methods as typed values, so that the front and the client never touch an octet.

One class per method, named after it: `queue.declare-ok` is `QueueDeclareOk`. The attributes are
the specification's fields with underscores, in its order; `no-wait` is `nowait`, `global` is
`global_`. Reserved fields are no attributes: the tables of the versions know where they stand. A
version that lacks a field leaves the attribute at its default.
"""

from __future__ import annotations

from harebell.wire.v09.method import METHODS as METHODS
from harebell.wire.v09.method import Method as Method
from harebell.wire.v09.method import Table

# --- connection, class 10 -----------------------------------------------------------------------


class ConnectionStart(Method):
    """The server introduces itself and offers SASL mechanisms, separated by spaces."""

    version_major: int = 0
    version_minor: int = 9
    server_properties: Table = {}
    mechanisms: bytes = b""
    locales: bytes = b""


class ConnectionStartOk(Method):
    """The client introduces itself and begins to log in."""

    client_properties: Table = {}
    mechanism: str = ""
    response: bytes = b""
    locale: str = ""


class ConnectionSecure(Method):
    """The server asks another question of the SASL mechanism."""

    challenge: bytes = b""


class ConnectionSecureOk(Method):
    """The client's answer to it."""

    response: bytes = b""


class ConnectionTune(Method):
    """The limits that the server offers; 0 is no limit."""

    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0


class ConnectionTuneOk(Method):
    """The limits that the client settles on."""

    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0


class ConnectionOpen(Method):
    """The client chooses a virtual host."""

    virtual_host: str = "/"
    capabilities: str = ""
    insist: bool = False


class ConnectionOpenOk(Method):
    """The connection may be used."""

    known_hosts: str = ""


class ConnectionRedirect(Method):
    """The client shall go to another server (before 0-9-1)."""

    host: str = ""
    known_hosts: str = ""


class ConnectionClose(Method):
    """One side ends the connection; class and method say what went wrong, or are 0."""

    reply_code: int = 200
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0


class ConnectionCloseOk(Method):
    """The other side agrees; this is the last frame."""


class ConnectionBlocked(Method):
    """The server takes no publishes for the time being (RabbitMQ)."""

    reason: str = ""


class ConnectionUnblocked(Method):
    """It takes them again (RabbitMQ)."""


class ConnectionUpdateSecret(Method):
    """The client renews the credentials of a running connection (RabbitMQ)."""

    new_secret: bytes = b""
    reason: str = ""


class ConnectionUpdateSecretOk(Method):
    """The new credentials are good (RabbitMQ)."""


# --- channel, class 20 --------------------------------------------------------------------------


class ChannelOpen(Method):
    """Open the channel that the frame names."""


class ChannelOpenOk(Method):
    """The channel may be used."""


class ChannelFlow(Method):
    """Ask the peer to stop or to go on sending contents."""

    active: bool = False


class ChannelFlowOk(Method):
    """What the peer does now."""

    active: bool = False


class ChannelClose(Method):
    """One side ends the channel; class and method say what went wrong, or are 0."""

    reply_code: int = 200
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0


class ChannelCloseOk(Method):
    """The channel is closed, its number is free."""


# --- access, class 30 (gone from 0-9-1, still answered) -----------------------------------------


class AccessRequest(Method):
    """A client of older habits asks for a ticket."""

    realm: str = "/data"
    exclusive: bool = False
    passive: bool = True
    active: bool = True
    write: bool = True
    read: bool = True


class AccessRequestOk(Method):
    """The ticket; it means nothing."""

    ticket: int = 1


# --- exchange, class 40 -------------------------------------------------------------------------


class ExchangeDeclare(Method):
    """Make an exchange, or check that it is as described."""

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
    """The exchange is there."""


class ExchangeDelete(Method):
    """Delete an exchange and its bindings."""

    exchange: str = ""
    if_unused: bool = False
    nowait: bool = False
    ticket: int = 0


class ExchangeDeleteOk(Method):
    """The exchange is gone."""


class ExchangeBind(Method):
    """Let messages flow from the source exchange to the destination exchange (RabbitMQ)."""

    destination: str = ""
    source: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = {}


class ExchangeBindOk(Method):
    """The binding is there (RabbitMQ)."""


class ExchangeUnbind(Method):
    """Remove such a binding (RabbitMQ)."""

    destination: str = ""
    source: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = {}


class ExchangeUnbindOk(Method):
    """The binding is gone (RabbitMQ)."""


# --- queue, class 50 ----------------------------------------------------------------------------


class QueueDeclare(Method):
    """Make a queue, or check that it is as described; "" lets the server name it."""

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
    """The queue is there; how many messages and consumers it has."""

    queue: str = ""
    message_count: int = 0
    consumer_count: int = 0


class QueueBind(Method):
    """Let messages flow from an exchange to a queue."""

    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = {}
    ticket: int = 0


class QueueBindOk(Method):
    """The binding is there."""


class QueueUnbind(Method):
    """Remove a binding."""

    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    arguments: Table = {}
    ticket: int = 0


class QueueUnbindOk(Method):
    """The binding is gone."""


class QueuePurge(Method):
    """Drop the messages that wait in a queue."""

    queue: str = ""
    nowait: bool = False
    ticket: int = 0


class QueuePurgeOk(Method):
    """How many messages were dropped."""

    message_count: int = 0


class QueueDelete(Method):
    """Delete a queue with its messages."""

    queue: str = ""
    if_unused: bool = False
    if_empty: bool = False
    nowait: bool = False
    ticket: int = 0


class QueueDeleteOk(Method):
    """How many messages went with it."""

    message_count: int = 0


# --- basic, class 60 ----------------------------------------------------------------------------


class BasicQos(Method):
    """How much may be delivered ahead of acknowledgements."""

    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False


class BasicQosOk(Method):
    """It is so."""


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
    """The consumer runs."""

    consumer_tag: str = ""


class BasicCancel(Method):
    """End a consumer; from the server: the queue is gone (RabbitMQ)."""

    consumer_tag: str = ""
    nowait: bool = False


class BasicCancelOk(Method):
    """The consumer has ended."""

    consumer_tag: str = ""


class BasicPublish(Method):
    """A message for an exchange; its content follows."""

    exchange: str = ""
    routing_key: str = ""
    mandatory: bool = False
    immediate: bool = False
    ticket: int = 0


class BasicReturn(Method):
    """A message that no queue took; its content follows."""

    reply_code: int = 312
    reply_text: str = "NO_ROUTE"
    exchange: str = ""
    routing_key: str = ""


class BasicDeliver(Method):
    """A message for a consumer; its content follows."""

    consumer_tag: str = ""
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""


class BasicGet(Method):
    """Ask for one message."""

    queue: str = ""
    no_ack: bool = False
    ticket: int = 0


class BasicGetOk(Method):
    """Here it is; its content follows."""

    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""
    message_count: int = 0


class BasicGetEmpty(Method):
    """There is none."""


class BasicAck(Method):
    """Messages are done with; from the server: publishes are safe (RabbitMQ)."""

    delivery_tag: int = 0
    multiple: bool = False


class BasicReject(Method):
    """A message is not wanted."""

    delivery_tag: int = 0
    requeue: bool = False


class BasicRecoverAsync(Method):
    """Deliver what is not acknowledged once more, without a reply."""

    requeue: bool = False


class BasicRecover(Method):
    """Deliver what is not acknowledged once more."""

    requeue: bool = False


class BasicRecoverOk(Method):
    """It is under way."""


class BasicNack(Method):
    """Messages are not wanted; from the server: publishes are lost (RabbitMQ)."""

    delivery_tag: int = 0
    multiple: bool = False
    requeue: bool = False


# --- confirm, class 85 (RabbitMQ), and tx, class 90 ---------------------------------------------


class ConfirmSelect(Method):
    """Acknowledge publishes on this channel from now on (RabbitMQ)."""

    nowait: bool = False


class ConfirmSelectOk(Method):
    """The next publish has number 1 (RabbitMQ)."""


class TxSelect(Method):
    """Put the channel into transaction mode."""


class TxSelectOk(Method):
    """A transaction is open."""


class TxCommit(Method):
    """Make the transaction's publishes and acknowledgements true."""


class TxCommitOk(Method):
    """They are, and the next transaction is open."""


class TxRollback(Method):
    """Forget the transaction's publishes and acknowledgements."""


class TxRollbackOk(Method):
    """They are forgotten, and the next transaction is open."""
