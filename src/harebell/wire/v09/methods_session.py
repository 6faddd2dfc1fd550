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
    """Ask the peer to stop or to go on sending contents."""

    active: bool = False


class SessionFlowOk(Method):
    """What the peer does now."""

    active: bool = False


class SessionClose(Method):
    """Ask the peer to destroy the session."""


class SessionClosed(Method):
    """The session is destroyed: because it was asked for (200), or for an error."""

    reply_code: int = 200
    reply_text: str = ""


class SessionResume(Method):
    """Attach the channel to a session that exists."""

    session_id: bytes = bytes(16)


class SessionPing(Method):
    """Ask for a pong."""


class SessionPong(Method):
    """The peer lives."""


class SessionSuspend(Method):
    """Detach from the session without destroying it."""


class SessionDetached(Method):
    """The channel is detached from the session."""


class SessionAck(Method):
    """Frames have arrived: all up to the mark, and those of the set."""

    cumulative_seen_mark: int = 0
    seen_frame_set: Ranges = ()


class SessionHighWaterMark(Method):
    """The last frame that was sent."""

    last_sent_mark: int = 0


class SessionSolicitAck(Method):
    """Ask which frames have arrived."""


# --- exchange, class 40, and binding, class 130 -------------------------------------------------


class ExchangeQuery(Method):
    """Ask what an exchange is."""

    name: str = ""
    ticket: int = 0


class ExchangeQueryOk(Method):
    """What it is, or that there is none."""

    type: str = ""
    durable: bool = False
    not_found: bool = False
    arguments: Table = {}


class BindingQuery(Method):
    """Ask whether there is such a binding."""

    exchange: str = ""
    queue: str = ""
    routing_key: str = ""
    arguments: Table = {}
    ticket: int = 0


class BindingQueryOk(Method):
    """What of it there is not."""

    exchange_not_found: bool = False
    queue_not_found: bool = False
    queue_not_matched: bool = False
    key_not_matched: bool = False
    args_not_matched: bool = False


# --- dtx-demarcation, class 100, and dtx-coordination, class 105 --------------------------------


class DtxDemarcationSelect(Method):
    """Let the channel take part in distributed transactions."""


class DtxDemarcationStart(Method):
    """What follows belongs to a branch."""

    xid: bytes = b""
    join: bool = False
    resume: bool = False
    ticket: int = 0


class DtxDemarcationStartOk(Method):
    """The XA return code of it."""

    status: int = 0


class DtxDemarcationEnd(Method):
    """What follows does not belong to the branch any more."""

    xid: bytes = b""
    fail: bool = False
    suspend: bool = False
    ticket: int = 0


class DtxDemarcationEndOk(Method):
    """The XA return code of it."""

    status: int = 0


class DtxCoordinationCommit(Method):
    """Make a branch's work true."""

    xid: bytes = b""
    one_phase: bool = False
    ticket: int = 0


class DtxCoordinationCommitOk(Method):
    """The XA return code of it."""

    status: int = 0


class DtxCoordinationForget(Method):
    """Forget how a branch was completed heuristically."""

    xid: bytes = b""
    ticket: int = 0


class DtxCoordinationGetTimeout(Method):
    """Ask for the timeout of a branch."""

    xid: bytes = b""


class DtxCoordinationGetTimeoutOk(Method):
    """It, in seconds."""

    timeout: int = 0


class DtxCoordinationPrepare(Method):
    """Make sure that a branch can be committed whatever happens."""

    xid: bytes = b""
    ticket: int = 0


class DtxCoordinationPrepareOk(Method):
    """The XA return code of it."""

    status: int = 0


class DtxCoordinationRecover(Method):
    """Ask for the branches that are prepared or were completed heuristically."""

    startscan: bool = False
    endscan: bool = False
    ticket: int = 0


class DtxCoordinationRecoverOk(Method):
    """Their xids."""

    in_doubt: Table = {}


class DtxCoordinationRollback(Method):
    """Undo a branch's work."""

    xid: bytes = b""
    ticket: int = 0


class DtxCoordinationRollbackOk(Method):
    """The XA return code of it."""

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
