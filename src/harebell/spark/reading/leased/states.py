"""The life of a leased reader, as a table: what may happen in each state, and what follows.

`docs/internals/leased-reader.md` has the drawing, which a test compares with the table.
"""

from __future__ import annotations

import enum


class ReaderState(enum.Enum):
    """What a reader holds of its lease group.

    CLOSED: nothing. The next call of Spark opens the group, which fences every earlier opener.
    HELD: the group, in the epoch that this process has opened.
    ANSWERED: the group, and the answer to a claim that was made together with those of other
        queues. The next `advance` or `extend` uses the answer.
    FINISHED: nothing more is claimed: an AvailableNow query has read all messages. The group may be
        opened once more, for a commit that comes late.
    """

    CLOSED = "closed"
    HELD = "held"
    ANSWERED = "answered"
    FINISHED = "finished"


class ReaderEvent(enum.Enum):
    """What happens to a reader.

    OPENED: the broker has opened the group; its claims include one whose answer was not used.
    RENEWED: the group was renewed over a new connection, in the same epoch.
    CLAIM_ANSWERED: the broker has answered a claim that was made together with others.
    ANSWER_USED: `advance` or `extend` has used the answer.
    LOST: the broker does not hold the group any more, or the result of a request is unknown.
    PREPARED: Spark begins an AvailableNow query.
    DRAINED: an AvailableNow query has committed its last claim.
    STOPPED: the query was stopped, or does not read the queue any more.
    """

    OPENED = "opened"
    RENEWED = "renewed"
    CLAIM_ANSWERED = "claim answered"
    ANSWER_USED = "answer used"
    LOST = "lost"
    PREPARED = "prepared"
    DRAINED = "drained"
    STOPPED = "stopped"


_S = ReaderState
_E = ReaderEvent

TRANSITIONS: dict[ReaderState, dict[ReaderEvent, ReaderState]] = {
    _S.CLOSED: {
        _E.OPENED: _S.HELD,
        _E.PREPARED: _S.CLOSED,
        _E.DRAINED: _S.FINISHED,
        _E.STOPPED: _S.CLOSED,
    },
    _S.HELD: {
        _E.OPENED: _S.HELD,
        _E.RENEWED: _S.HELD,
        _E.CLAIM_ANSWERED: _S.ANSWERED,
        _E.LOST: _S.CLOSED,
        _E.PREPARED: _S.HELD,
        _E.DRAINED: _S.FINISHED,
        _E.STOPPED: _S.CLOSED,
    },
    _S.ANSWERED: {
        # The broker lists every open claim when the group is opened: the answer is not needed.
        _E.OPENED: _S.HELD,
        _E.RENEWED: _S.ANSWERED,
        _E.ANSWER_USED: _S.HELD,
        _E.LOST: _S.CLOSED,
        _E.PREPARED: _S.ANSWERED,
        _E.DRAINED: _S.FINISHED,
        _E.STOPPED: _S.CLOSED,
    },
    _S.FINISHED: {
        _E.OPENED: _S.FINISHED,
        _E.RENEWED: _S.FINISHED,
        _E.LOST: _S.FINISHED,
        # A group that a late commit has opened is not kept: opening it again is always safe.
        _E.PREPARED: _S.CLOSED,
        _E.DRAINED: _S.FINISHED,
        _E.STOPPED: _S.FINISHED,
    },
}
"""The states that follow. An event that a state does not list cannot happen in it."""


def following(state: ReaderState, event: ReaderEvent) -> ReaderState:
    """Return the state after an event.

    Raises:
        RuntimeError: the event cannot happen in this state, so the reader has an error.
    """
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise RuntimeError(
            f"a leased reader that is {state.value} got the event {event.value!r}"
        ) from None
