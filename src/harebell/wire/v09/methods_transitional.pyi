# Written by tools/method_stubs.py from the tables.
from harebell.wire.v09.method import Method as Method
from harebell.wire.v09.transitional_types import Body as Body
from typing import Any as Any


class SessionOpen(Method):
    """Make a session and attach the channel to it."""

    detached_lifetime: int = 0

class SessionAttached(Method):
    """The channel is attached to the session."""

    session_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
    detached_lifetime: int = 0

class SessionFlow(Method):
    """Ask the peer to stop sending content, or to continue."""

    active: bool = False

class SessionFlowOk(Method):
    """Whether the peer sends content now."""

    active: bool = False

class SessionClose(Method):
    """Ask the peer to destroy the session."""

class SessionClosed(Method):
    """The session is destroyed: on request (200), or because of an error."""

    reply_code: int = 200
    reply_text: str = ''

class SessionResume(Method):
    """Attach the channel to a session that exists."""

    session_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'

class SessionPing(Method):
    """Ask for a pong."""

class SessionPong(Method):
    """Answer a ping."""

class SessionSuspend(Method):
    """Detach from the session without destroying it."""

class SessionDetached(Method):
    """The channel is detached from the session."""

class SessionAck(Method):
    """Frames have arrived: all up to the mark, and those of the set."""

    cumulative_seen_mark: int = 0
    seen_frame_set: tuple[tuple[int, int], ...] = ()

class SessionHighWaterMark(Method):
    """The number of the last frame that was sent."""

    last_sent_mark: int = 0

class SessionSolicitAck(Method):
    """Ask which frames have arrived."""

class ExchangeQuery(Method):
    """Ask what an exchange is."""

    name: str = ''
    ticket: int = 0

class ExchangeQueryOk(Method):
    """Its type and properties, or that there is none."""

    type: str = ''
    durable: bool = False
    not_found: bool = False
    arguments: dict[str, Any] = {}

class DtxDemarcationSelect(Method):
    """Put the channel into the mode of distributed transactions."""

class DtxDemarcationStart(Method):
    """Begin work on a branch: what follows belongs to it."""

    xid: bytes = b''
    join: bool = False
    resume: bool = False
    ticket: int = 0

class DtxDemarcationStartOk(Method):
    """The XA return code."""

    status: int = 0

class DtxDemarcationEnd(Method):
    """End work on a branch: what follows does not belong to it."""

    xid: bytes = b''
    fail: bool = False
    suspend: bool = False
    ticket: int = 0

class DtxDemarcationEndOk(Method):
    """The XA return code."""

    status: int = 0

class DtxCoordinationCommit(Method):
    """Commit a branch."""

    xid: bytes = b''
    one_phase: bool = False
    ticket: int = 0

class DtxCoordinationCommitOk(Method):
    """The XA return code."""

    status: int = 0

class DtxCoordinationForget(Method):
    """Forget how a branch was completed heuristically."""

    xid: bytes = b''
    ticket: int = 0

class DtxCoordinationGetTimeout(Method):
    """Ask for the timeout of a branch."""

    xid: bytes = b''

class DtxCoordinationGetTimeoutOk(Method):
    """The timeout, in seconds."""

    timeout: int = 0

class DtxCoordinationPrepare(Method):
    """Prepare a branch: it can be committed whatever happens then."""

    xid: bytes = b''
    ticket: int = 0

class DtxCoordinationPrepareOk(Method):
    """The XA return code."""

    status: int = 0

class DtxCoordinationRecover(Method):
    """Ask for the branches that are prepared or were completed heuristically."""

    startscan: bool = False
    endscan: bool = False
    ticket: int = 0

class DtxCoordinationRecoverOk(Method):
    """The xids of these branches."""

    in_doubt: dict[str, Any] = {}

class DtxCoordinationRollback(Method):
    """Roll back a branch."""

    xid: bytes = b''
    ticket: int = 0

class DtxCoordinationRollbackOk(Method):
    """The XA return code."""

    status: int = 0

class DtxCoordinationSetTimeout(Method):
    """Set the timeout of a branch, in seconds."""

    xid: bytes = b''
    timeout: int = 0
    ticket: int = 0

class MessageTransfer(Method):
    """A message, whole or by reference to its body, in either direction. `mandatory` is the field
    reject-unroutable."""

    destination: str = ''
    redelivered: bool = False
    mandatory: bool = False
    immediate: bool = False
    ttl: int = 0
    priority: int = 0
    timestamp: int = 0
    delivery_mode: int = 0
    expiration: int = 0
    exchange: str = ''
    routing_key: str = ''
    message_id: str = ''
    correlation_id: str = ''
    reply_to: str = ''
    content_type: str = ''
    content_encoding: str = ''
    content_length: int = 0
    type: str = ''
    user_id: str = ''
    app_id: str = ''
    transaction_id: str = ''
    security_token: bytes = b''
    application_headers: dict[str, Any] = {}
    body: Body = Body(kind=0, octets=b'')
    ticket: int = 0

class MessageConsume(Method):
    """Start a consumer, which is named by its destination."""

    queue: str = ''
    destination: str = ''
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    filter: dict[str, Any] = {}
    ticket: int = 0

class MessageCancel(Method):
    """Cancel a consumer."""

    destination: str = ''

class MessageGet(Method):
    """Get one message from a queue."""

    queue: str = ''
    destination: str = ''
    no_ack: bool = False
    ticket: int = 0

class MessageRecover(Method):
    """Deliver unacknowledged messages again."""

    requeue: bool = False

class MessageOpen(Method):
    """Begin a body that is sent in pieces, under a reference."""

    reference: bytes = b''

class MessageClose(Method):
    """End a body; its reference is free again."""

    reference: bytes = b''

class MessageAppend(Method):
    """The next piece of a body."""

    reference: bytes = b''
    octets: bytes = b''

class MessageCheckpoint(Method):
    """Mark an offset in a body, to resume from if the session breaks."""

    reference: bytes = b''
    identifier: str = ''

class MessageResume(Method):
    """Resume a body from its last mark."""

    reference: bytes = b''
    identifier: str = ''

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
    text: str = ''

class MessageOffset(Method):
    """The number of octets of a body that have arrived."""

    value: int = 0

class BindingQuery(Method):
    """Ask whether a binding exists."""

    exchange: str = ''
    queue: str = ''
    routing_key: str = ''
    arguments: dict[str, Any] = {}
    ticket: int = 0

class BindingQueryOk(Method):
    """Which parts of it do not exist."""

    exchange_not_found: bool = False
    queue_not_found: bool = False
    queue_not_matched: bool = False
    key_not_matched: bool = False
    args_not_matched: bool = False

class ExecutionFlush(Method):
    """Ask which commands are complete."""

class ExecutionComplete(Method):
    """Commands are complete: all up to the mark, and those of the set."""

    cumulative_execution_mark: int = 0
    ranged_execution_set: tuple[tuple[int, int], ...] = ()
