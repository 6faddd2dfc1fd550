# Written by tools/method_stubs.py from the tables.
from harebell.wire.v09.method import Method as Method
from typing import Any as Any


class ConnectionStart(Method):
    """The server states its properties and offers SASL mechanisms, separated by spaces."""

    version_major: int = 0
    version_minor: int = 9
    server_properties: dict[str, Any] = {}
    mechanisms: bytes = b''
    locales: bytes = b''

class ConnectionStartOk(Method):
    """The client states its properties and chooses a SASL mechanism."""

    client_properties: dict[str, Any] = {}
    mechanism: str = ''
    response: bytes = b''
    locale: str = ''

class ConnectionSecure(Method):
    """The next challenge of the SASL mechanism."""

    challenge: bytes = b''

class ConnectionSecureOk(Method):
    """The client's response to the challenge."""

    response: bytes = b''

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

    virtual_host: str = '/'
    capabilities: str = ''
    insist: bool = False

class ConnectionOpenOk(Method):
    """The connection is open."""

    known_hosts: str = ''

class ConnectionClose(Method):
    """Close the connection; class and method say what failed, or are 0."""

    reply_code: int = 200
    reply_text: str = ''
    class_id: int = 0
    method_id: int = 0

class ConnectionCloseOk(Method):
    """The connection is closed; this is the last frame."""

class ConnectionBlocked(Method):
    """The server blocks publishers (RabbitMQ)."""

    reason: str = ''

class ConnectionUnblocked(Method):
    """The server does not block publishers any more (RabbitMQ)."""

class ConnectionUpdateSecret(Method):
    """The client renews the credentials of a running connection (RabbitMQ)."""

    new_secret: bytes = b''
    reason: str = ''

class ConnectionUpdateSecretOk(Method):
    """The server has accepted the new credentials (RabbitMQ)."""

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
    reply_text: str = ''
    class_id: int = 0
    method_id: int = 0

class ChannelCloseOk(Method):
    """The channel is closed, and its number is free."""

class AccessRequest(Method):
    """Ask for an access ticket (before 0-9-1; still accepted)."""

    realm: str = '/data'
    exclusive: bool = False
    passive: bool = True
    active: bool = True
    write: bool = True
    read: bool = True

class AccessRequestOk(Method):
    """The ticket. In 0-9-1 nothing checks it."""

    ticket: int = 1

class ExchangeDeclare(Method):
    """Declare an exchange; with `passive` only check that it exists."""

    exchange: str = ''
    type: str = 'direct'
    passive: bool = False
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    nowait: bool = False
    arguments: dict[str, Any] = {}
    alternate_exchange: str = ''
    ticket: int = 0

class ExchangeDeclareOk(Method):
    """The exchange exists."""

class ExchangeDelete(Method):
    """Delete an exchange and its bindings."""

    exchange: str = ''
    if_unused: bool = False
    nowait: bool = False
    ticket: int = 0

class ExchangeDeleteOk(Method):
    """The exchange is deleted."""

class ExchangeBind(Method):
    """Bind the destination exchange to the source exchange (RabbitMQ)."""

    destination: str = ''
    source: str = ''
    routing_key: str = ''
    nowait: bool = False
    arguments: dict[str, Any] = {}

class ExchangeBindOk(Method):
    """The binding exists (RabbitMQ)."""

class ExchangeUnbind(Method):
    """Remove a binding between exchanges (RabbitMQ)."""

    destination: str = ''
    source: str = ''
    routing_key: str = ''
    nowait: bool = False
    arguments: dict[str, Any] = {}

class ExchangeUnbindOk(Method):
    """The binding is removed (RabbitMQ)."""

class QueueDeclare(Method):
    """Declare a queue, or with `passive` check that it exists; "" lets the server name it."""

    queue: str = ''
    passive: bool = False
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    nowait: bool = False
    arguments: dict[str, Any] = {}
    alternate_exchange: str = ''
    ticket: int = 0

class QueueDeclareOk(Method):
    """The queue exists; the numbers of its ready messages and consumers."""

    queue: str = ''
    message_count: int = 0
    consumer_count: int = 0

class QueueBind(Method):
    """Bind a queue to an exchange."""

    queue: str = ''
    exchange: str = ''
    routing_key: str = ''
    nowait: bool = False
    arguments: dict[str, Any] = {}
    ticket: int = 0

class QueueBindOk(Method):
    """The binding exists."""

class QueuePurge(Method):
    """Remove the ready messages of a queue."""

    queue: str = ''
    nowait: bool = False
    ticket: int = 0

class QueuePurgeOk(Method):
    """The number of removed messages."""

    message_count: int = 0

class QueueDelete(Method):
    """Delete a queue with its messages."""

    queue: str = ''
    if_unused: bool = False
    if_empty: bool = False
    nowait: bool = False
    ticket: int = 0

class QueueDeleteOk(Method):
    """The number of messages that were deleted with it."""

    message_count: int = 0

class QueueUnbind(Method):
    """Remove a binding."""

    queue: str = ''
    exchange: str = ''
    routing_key: str = ''
    arguments: dict[str, Any] = {}
    ticket: int = 0

class QueueUnbindOk(Method):
    """The binding is removed."""

class BasicQos(Method):
    """Limit the unacknowledged messages (prefetch)."""

    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False

class BasicQosOk(Method):
    """The limit applies."""

class BasicConsume(Method):
    """Start a consumer; "" lets the server choose its tag."""

    queue: str = ''
    consumer_tag: str = ''
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    nowait: bool = False
    arguments: dict[str, Any] = {}
    ticket: int = 0

class BasicConsumeOk(Method):
    """The consumer has started."""

    consumer_tag: str = ''

class BasicCancel(Method):
    """Cancel a consumer; from the server: its queue was deleted (RabbitMQ)."""

    consumer_tag: str = ''
    nowait: bool = False

class BasicCancelOk(Method):
    """The consumer is cancelled."""

    consumer_tag: str = ''

class BasicPublish(Method):
    """Publish a message to an exchange; its content follows."""

    exchange: str = ''
    routing_key: str = ''
    mandatory: bool = False
    immediate: bool = False
    ticket: int = 0

class BasicReturn(Method):
    """Return an unroutable message; its content follows."""

    reply_code: int = 312
    reply_text: str = 'NO_ROUTE'
    exchange: str = ''
    routing_key: str = ''

class BasicDeliver(Method):
    """Deliver a message to a consumer; its content follows."""

    consumer_tag: str = ''
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ''
    routing_key: str = ''

class BasicGet(Method):
    """Get one message from a queue."""

    queue: str = ''
    no_ack: bool = False
    ticket: int = 0

class BasicGetOk(Method):
    """The message; its content follows."""

    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ''
    routing_key: str = ''
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

class LeaseOpen(Method):
    """Open a group in a new epoch, which fences all older ones."""

    queue: str = ''
    group: str = ''
    timeout: int = 0

class LeaseOpenOk(Method):
    """The new epoch, and the state of the group."""

    epoch: int = 0
    generation: str = ''
    committed: int = 0
    last: int = 0
    lost: int = 0
    timeout: int = 0
    claims: bytes = b''

class LeaseClaim(Method):
    """Claim ready messages."""

    queue: str = ''
    group: str = ''
    epoch: int = 0
    messages: int = 0
    octets: int = 0

class LeaseClaimOk(Method):
    """The claim; number 0 if no message was ready."""

    number: int = 0
    messages: int = 0
    octets: int = 0
    first: int = 0
    end: int = 0

class LeaseCommit(Method):
    """Acknowledge all messages up to a claim."""

    queue: str = ''
    group: str = ''
    epoch: int = 0
    number: int = 0

class LeaseCommitOk(Method):
    """The last committed claim, and the number of messages that this commit acknowledged."""

    committed: int = 0
    messages: int = 0

class LeaseRelease(Method):
    """Requeue the messages of all claims from a number on; 0 for all."""

    queue: str = ''
    group: str = ''
    epoch: int = 0
    number: int = 0

class LeaseReleaseOk(Method):
    """The number of requeued messages."""

    messages: int = 0

class LeaseRenew(Method):
    """Let this connection hold the group, in its present epoch."""

    queue: str = ''
    group: str = ''
    epoch: int = 0

class LeaseRenewOk(Method):
    """The connection holds the group."""

class LeaseClose(Method):
    """Let go of the group; with `forget` delete it and requeue its claims."""

    queue: str = ''
    group: str = ''
    epoch: int = 0
    forget: bool = False

class LeaseCloseOk(Method):
    """The number of requeued messages."""

    messages: int = 0

class BulkSpan(Method):
    """Ask where a queue's log begins and ends; a time is in milliseconds since 1970, 0 is none."""

    queue: str = ''
    time: int = 0

class BulkSpanOk(Method):
    """The log, its positions, and the first position of the asked time or later."""

    generation: str = ''
    kind: str = ''
    first: int = 0
    end: int = 0
    messages: int = 0
    octets: int = 0
    position: int = 0

class BulkRead(Method):
    """Ask for the messages of some positions, or of a claim."""

    queue: str = ''
    generation: str = ''
    group: str = ''
    epoch: int = 0
    claim: int = 0
    first: int = 0
    end: int = 0
    columns: bytes = b''
    rows: int = 0
    octets: int = 0
    compression: str = ''
    filter: dict[str, Any] = {}
    skip_lost: bool = False

class BulkBatch(Method):
    """A record batch, the position to continue from, and the number of lost positions."""

    next: int = 0
    rows: int = 0
    lost: int = 0

class BulkQueues(Method):
    """Ask for the names of the queues that may be read."""

    after: str = ''

class BulkQueuesOk(Method):
    """The names, each with its size in one octet before it, and whether there are more."""

    names: bytes = b''
    more: bool = False

class BulkLetters(Method):
    """Ask for the queues that get dead letters of a queue, as far as they may be read."""

    queue: str = ''

class StageOpen(Method):
    """Begin or continue a run of a publisher, which fences all its other runs."""

    publisher: str = ''
    run: str = ''

class StageOpenOk(Method):
    """The number of the next batch."""

    next: int = 0

class StageAppend(Method):
    """Stage a piece of a part of a batch; its content follows."""

    publisher: str = ''
    run: str = ''
    batch: int = 0
    part: int = 0
    attempt: int = 0
    number: int = 0
    columns: bytes = b''

class StageAppendOk(Method):
    """What is staged of this attempt of the part."""

    rows: int = 0
    octets: int = 0

class StageCommit(Method):
    """Publish these parts of a batch, all or nothing."""

    publisher: str = ''
    run: str = ''
    batch: int = 0
    exchange: str = ''
    routing_key: str = ''
    delivery_mode: int = 0
    mandatory: bool = False
    dead_letter: str = ''
    parts: bytes = b''

class StageCommitOk(Method):
    """The batch is published; `repeated` if it had been before, and nothing was done."""

    rows: int = 0
    unroutable: int = 0
    repeated: bool = False

class StageAbort(Method):
    """Drop all staged rows of a batch."""

    publisher: str = ''
    run: str = ''
    batch: int = 0

class StageAbortOk(Method):
    """The number of dropped rows."""

    rows: int = 0

class StageDiscard(Method):
    """Drop the rows that one attempt has staged of a part."""

    publisher: str = ''
    run: str = ''
    batch: int = 0
    part: int = 0
    attempt: int = 0

class StageDiscardOk(Method):
    """The number of dropped rows."""

    rows: int = 0

class PublisherDeclare(Method):
    """Publish on this channel as a named publisher; eras are those of the numbers below `next`."""

    publisher: str = ''
    next: int = 0
    eras: bytes = b''

class PublisherDeclareOk(Method):
    """The smallest publishing id that was not used yet, and the eras of those before it."""

    next: int = 0
    eras: bytes = b''

class PublisherForget(Method):
    """Forget what a publisher has published and staged: its name is not used again."""

    publisher: str = ''

class PublisherForgetOk(Method):
    """The publisher is forgotten."""

class QueryReport(Method):
    """Report how far a query is."""

    query: str = ''
    facts: dict[str, Any] = {}

class QueryReportOk(Method):
    """The report replaces the previous one of this user about the query."""

class HistoryAsk(Method):
    """Ask for the eras of a queue's positions; with a lease group, of its claim numbers."""

    queue: str = ''
    group: str = ''

class HistoryAskOk(Method):
    """The identity of the log, and the eras (`harebell.base.eras`) in ASCII, the oldest first."""

    generation: str = ''
    eras: bytes = b''
