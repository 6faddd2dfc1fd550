r"""The states of a branch of a distributed transaction: state, call -> state, status.

    unknown --start--> active --last end--> idle --prepare--> prepared --commit, rollback--> unknown
                         |                   |  \--commit one phase, rollback--> unknown
                         | fail, lost        | timeout
                         v                   v
                       failing, expiring   failed, expired   rolled back, and known until
                                                             a session has seen it

A branch is active while a session is associated with it, suspended or not. A prepared branch ends
only by a call of the transaction manager or by a heuristic decision of an operator, which is kept
until the manager calls forget.
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class Status(enum.IntEnum):
    """Status codes (X/Open XA; the numbers are those of AMQP 0-10)."""

    OK = 0
    ROLLED_BACK = 1
    TIMED_OUT = 2
    HEURISTIC_HAZARD = 3
    HEURISTIC_COMMIT = 4
    HEURISTIC_ROLLBACK = 5
    HEURISTIC_MIX = 6
    READ_ONLY = 7


class Fault(enum.Enum):
    """Reasons for a refusal; each protocol version has a code for it."""

    UNKNOWN_XID = "is not known"
    ALREADY_KNOWN = "is known already"
    ILLEGAL_STATE = "does not allow that"
    INVALID = "is no valid command"
    BAD_VALUE = "is no valid value"
    TOO_MUCH = "is over a limit"
    FAILED = "failed"


class State(enum.Enum):
    """The states of a branch."""

    UNKNOWN = "unknown"
    ACTIVE = "active"
    IDLE = "idle"
    PREPARED = "prepared"
    READ_ONLY = "read-only"
    FAILING = "failing"
    FAILED = "failed"
    EXPIRING = "expiring"
    EXPIRED = "expired"
    DECIDED_COMMIT = "committed heuristically"
    DECIDED_ROLLBACK = "rolled back heuristically"


class Call(enum.Enum):
    """Calls on a branch. After END, FAIL, LOST others are associated, after LAST_... none."""

    START = "start"
    JOIN = "join"
    RESUME = "resume"
    SUSPEND = "suspend"
    END = "end"
    LAST_END = "last end"
    FAIL = "end with fail"
    LAST_FAIL = "last end with fail"
    LOST = "loss of a session"
    LAST_LOST = "loss of the last session"
    PREPARE = "prepare"
    PREPARE_NOTHING = "prepare without work"
    PREPARE_CROWDED = "prepare without room"
    COMMIT = "commit"
    COMMIT_ONE_PHASE = "commit in one phase"
    COMMIT_CROWDED = "commit in one phase without room"
    ROLLBACK = "rollback"
    FORGET = "forget"
    TIMEOUT = "timeout"
    GET_TIMEOUT = "get-timeout"
    SET_TIMEOUT = "set-timeout"
    DECIDE_COMMIT = "decision to commit"
    DECIDE_ROLLBACK = "decision to roll back"


class Step(NamedTuple):
    """The result of a call in a state.

    Args:
        state: the new state.
        status: the status of the reply.
    """

    state: State
    status: Status = Status.OK


def _ended(associated: State, alone: State, status: Status) -> dict[Call, Step]:
    """Return the steps of sessions on a branch that was rolled back while they were associated."""
    stays, leaves = Step(associated, status), Step(alone, status)
    return {
        Call.JOIN: stays,
        Call.RESUME: stays,
        Call.SUSPEND: stays,
        Call.END: stays,
        Call.LAST_END: leaves,
        Call.FAIL: stays,
        Call.LAST_FAIL: leaves,
        Call.LOST: stays,
        Call.LAST_LOST: leaves,
        Call.TIMEOUT: stays,
    }


def _over(state: State, status: Status, answer: Status) -> dict[Call, Step]:
    """Return the steps on a rolled back branch without sessions."""
    # The branch was remembered to tell its outcome: with the answer it may be forgotten.
    gone = Step(State.UNKNOWN, status)
    return {
        Call.JOIN: Step(state, status),
        Call.PREPARE: Step(state, status),
        Call.PREPARE_NOTHING: Step(state, status),
        Call.PREPARE_CROWDED: Step(state, status),
        Call.COMMIT: gone,
        Call.COMMIT_ONE_PHASE: gone,
        Call.COMMIT_CROWDED: gone,
        Call.ROLLBACK: Step(State.UNKNOWN, answer),
        Call.TIMEOUT: Step(State.UNKNOWN),
    }


def _decided(state: State, status: Status) -> dict[Call, Step]:
    """Return the steps on a heuristically decided branch."""
    # X/Open XA: a heuristic outcome is told at every question until it is to be forgotten.
    answered = Step(state, status)
    return {
        Call.COMMIT: answered,
        Call.COMMIT_ONE_PHASE: answered,
        Call.COMMIT_CROWDED: answered,
        Call.ROLLBACK: answered,
        Call.FORGET: Step(State.UNKNOWN),
    }


_ROWS: dict[State, dict[Call, Step]] = {
    State.UNKNOWN: {Call.START: Step(State.ACTIVE)},
    State.ACTIVE: {
        Call.JOIN: Step(State.ACTIVE),
        Call.RESUME: Step(State.ACTIVE),
        Call.SUSPEND: Step(State.ACTIVE),
        Call.END: Step(State.ACTIVE),
        Call.LAST_END: Step(State.IDLE),
        Call.FAIL: Step(State.FAILING, Status.ROLLED_BACK),
        Call.LAST_FAIL: Step(State.FAILED, Status.ROLLED_BACK),
        Call.LOST: Step(State.FAILING),
        Call.LAST_LOST: Step(State.FAILED),
        Call.TIMEOUT: Step(State.EXPIRING),
    },
    State.IDLE: {
        Call.JOIN: Step(State.ACTIVE),
        Call.PREPARE: Step(State.PREPARED),
        Call.PREPARE_NOTHING: Step(State.READ_ONLY, Status.READ_ONLY),
        Call.PREPARE_CROWDED: Step(State.FAILED, Status.ROLLED_BACK),
        Call.COMMIT_ONE_PHASE: Step(State.UNKNOWN),
        Call.COMMIT_CROWDED: Step(State.UNKNOWN, Status.ROLLED_BACK),
        Call.ROLLBACK: Step(State.UNKNOWN),
        Call.TIMEOUT: Step(State.EXPIRED),
    },
    State.PREPARED: {
        Call.COMMIT: Step(State.UNKNOWN),
        Call.ROLLBACK: Step(State.UNKNOWN),
        # A promise: only the transaction manager or an operator ends it.
        Call.TIMEOUT: Step(State.PREPARED),
        Call.DECIDE_COMMIT: Step(State.DECIDED_COMMIT),
        Call.DECIDE_ROLLBACK: Step(State.DECIDED_ROLLBACK),
    },
    State.READ_ONLY: {
        # Finished, although it is remembered: the xid may be used again.
        Call.START: Step(State.ACTIVE),
        Call.COMMIT: Step(State.UNKNOWN),
        Call.ROLLBACK: Step(State.UNKNOWN),
        Call.TIMEOUT: Step(State.UNKNOWN),
    },
    State.FAILING: _ended(State.FAILING, State.FAILED, Status.ROLLED_BACK),
    State.FAILED: _over(State.FAILED, Status.ROLLED_BACK, Status.OK),
    State.EXPIRING: _ended(State.EXPIRING, State.EXPIRED, Status.TIMED_OUT),
    State.EXPIRED: _over(State.EXPIRED, Status.TIMED_OUT, Status.TIMED_OUT),
    State.DECIDED_COMMIT: _decided(State.DECIDED_COMMIT, Status.HEURISTIC_COMMIT),
    State.DECIDED_ROLLBACK: _decided(State.DECIDED_ROLLBACK, Status.HEURISTIC_ROLLBACK),
}

ASSOCIATED = (State.ACTIVE, State.FAILING, State.EXPIRING)
"""A session is associated with the branch, active or suspended."""
DONE = (State.FAILING, State.FAILED, State.EXPIRING, State.EXPIRED)
"""The branch has been rolled back."""
IN_DOUBT = (State.PREPARED, State.DECIDED_COMMIT, State.DECIDED_ROLLBACK)
"""States in a recovery scan; they survive a restart."""
_TIMEOUTS = (Call.GET_TIMEOUT, Call.SET_TIMEOUT)


def step(state: State, call: Call) -> Step | Fault:
    """Return the step of a call in a state, or the reason for a refusal."""
    outcome = _ROWS[state].get(call)
    if outcome is not None:
        return outcome
    if state is State.UNKNOWN:
        return Fault.UNKNOWN_XID
    if state is State.READ_ONLY and call in (Call.JOIN, *_TIMEOUTS):
        # The prepare has committed it: it is read-only.
        return Fault.UNKNOWN_XID
    if call in _TIMEOUTS:
        return Step(state)
    return Fault.ALREADY_KNOWN if call is Call.START else Fault.ILLEGAL_STATE
