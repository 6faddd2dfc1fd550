"""Methods that only transitional 0-10 has: sessions, execution, queries, and dtx in two classes.

See `harebell.wire.v09.methods`. The class message is in `harebell.wire.v09.methods_message`.
"""

from __future__ import annotations

from harebell.wire.v09.method import Method, Table

Ranges = tuple[tuple[int, int], ...]
"""Closed intervals of serial numbers."""


# --- session, class 20 --------------------------------------------------------------------------


class SessionOpen(Method):
    """Make a session and attach the channel to it."""

    detached_lifetime: int = 0


class SessionAttached(Method):
    """The channel is attached to the session."""

    session_id: bytes = bytes(16)
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
    reply_text: str = ""


class SessionResume(Method):
    """Attach the channel to a session that exists."""

    session_id: bytes = bytes(16)


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
    seen_frame_set: Ranges = ()


class SessionHighWaterMark(Method):
    """The number of the last frame that was sent."""

    last_sent_mark: int = 0


class SessionSolicitAck(Method):
    """Ask which frames have arrived."""


# --- exchange, class 40, and binding, class 130 -------------------------------------------------


class ExchangeQuery(Method):
    """Ask what an exchange is."""

    name: str = ""
    ticket: int = 0


class ExchangeQueryOk(Method):
    """Its type and properties, or that there is none."""

    type: str = ""
    durable: bool = False
    not_found: bool = False
    arguments: Table = {}


class BindingQuery(Method):
    """Ask whether a binding exists."""

    exchange: str = ""
    queue: str = ""
    routing_key: str = ""
    arguments: Table = {}
    ticket: int = 0


class BindingQueryOk(Method):
    """Which parts of it do not exist."""

    exchange_not_found: bool = False
    queue_not_found: bool = False
    queue_not_matched: bool = False
    key_not_matched: bool = False
    args_not_matched: bool = False


# --- dtx-demarcation, class 100, and dtx-coordination, class 105 --------------------------------


class DtxDemarcationSelect(Method):
    """Put the channel into the mode of distributed transactions."""


class DtxDemarcationStart(Method):
    """Begin work on a branch: what follows belongs to it."""

    xid: bytes = b""
    join: bool = False
    resume: bool = False
    ticket: int = 0


class DtxDemarcationStartOk(Method):
    """The XA return code."""

    status: int = 0


class DtxDemarcationEnd(Method):
    """End work on a branch: what follows does not belong to it."""

    xid: bytes = b""
    fail: bool = False
    suspend: bool = False
    ticket: int = 0


class DtxDemarcationEndOk(Method):
    """The XA return code."""

    status: int = 0


class DtxCoordinationCommit(Method):
    """Commit a branch."""

    xid: bytes = b""
    one_phase: bool = False
    ticket: int = 0


class DtxCoordinationCommitOk(Method):
    """The XA return code."""

    status: int = 0


class DtxCoordinationForget(Method):
    """Forget how a branch was completed heuristically."""

    xid: bytes = b""
    ticket: int = 0


class DtxCoordinationGetTimeout(Method):
    """Ask for the timeout of a branch."""

    xid: bytes = b""


class DtxCoordinationGetTimeoutOk(Method):
    """The timeout, in seconds."""

    timeout: int = 0


class DtxCoordinationPrepare(Method):
    """Prepare a branch: it can be committed whatever happens then."""

    xid: bytes = b""
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

    in_doubt: Table = {}


class DtxCoordinationRollback(Method):
    """Roll back a branch."""

    xid: bytes = b""
    ticket: int = 0


class DtxCoordinationRollbackOk(Method):
    """The XA return code."""

    status: int = 0


class DtxCoordinationSetTimeout(Method):
    """Set the timeout of a branch, in seconds."""

    xid: bytes = b""
    timeout: int = 0
    ticket: int = 0


# --- execution, class 140 -----------------------------------------------------------------------


class ExecutionFlush(Method):
    """Ask which commands are complete."""


class ExecutionComplete(Method):
    """Commands are complete: all up to the mark, and those of the set."""

    cumulative_execution_mark: int = 0
    ranged_execution_set: Ranges = ()
