"""The life of a channel of AMQP 0-10 as a table: which session is on it (AMQP 0-10 9.2).

The next state is the usual one: session.attach leads to `RESUMING` where the session has commands
that may have to be sent again, and changes nothing where the name is attached elsewhere. A session
that fails, or that another connection attaches with force, leads to `ENDING` from any state.
"""

from __future__ import annotations

import enum

from harebell.front.amqp_0_10.errors import ILLEGAL_ARGUMENT
from harebell.front.common.state_table import IGNORED, Fault, Ignored


class ChannelState(enum.Enum):
    """Whether a session is attached to a channel.

    `RESUMING`: the broker waits for what the peer has received before it sends commands.
    `ENDING`: the session failed; what the peer has sent before it knew that is ignored.
    """

    DETACHED = "detached"
    RESUMING = "resuming"
    ATTACHED = "attached"
    ENDING = "ending"


class ChannelEvent(enum.Enum):
    """What arrives on a channel of an open connection: a control of class session, or a command."""

    ATTACH = "session.attach"
    ATTACHED = "session.attached"
    DETACH = "session.detach"
    DETACHED = "session.detached"
    REQUEST_TIMEOUT = "session.request-timeout"
    TIMEOUT = "session.timeout"
    COMMAND_POINT = "session.command-point"
    EXPECTED = "session.expected"
    CONFIRMED = "session.confirmed"
    COMPLETED = "session.completed"
    KNOWN_COMPLETED = "session.known-completed"
    FLUSH = "session.flush"
    GAP = "session.gap"
    COMMAND = "command"


_S = ChannelState
_E = ChannelEvent

EVENTS = {event.value: event for event in _E}
"""Name of a control -> event."""

ChannelRow = dict[ChannelEvent, ChannelState | Fault | Ignored]

NOT_ATTACHED = Fault(3, "not-attached")
"""The only fault that is sent as session.detached, once: the state is `ENDING` afterwards."""

_NOT_ASKED = Fault(ILLEGAL_ARGUMENT, "session.attached without session.attach")
_UNUSED: ChannelRow = {_E.ATTACH: _S.ATTACHED, _E.DETACH: _S.DETACHED, _E.DETACHED: _S.DETACHED}


def _used(state: ChannelState) -> ChannelRow:
    """Return the row of a channel with a session; session.timeout has no effect here."""
    row: ChannelRow = dict.fromkeys(_E, state)
    return row | {
        _E.ATTACHED: _NOT_ASKED,
        _E.DETACH: _S.DETACHED,
        _E.DETACHED: _S.DETACHED,
        _E.TIMEOUT: IGNORED,
    }


CHANNEL: dict[ChannelState, ChannelRow] = {
    _S.DETACHED: {**dict.fromkeys(_E, NOT_ATTACHED), **_UNUSED},
    _S.RESUMING: _used(_S.RESUMING) | {_E.EXPECTED: _S.ATTACHED},
    # Without a replay, there is nothing to send again.
    _S.ATTACHED: _used(_S.ATTACHED) | {_E.EXPECTED: IGNORED},
    _S.ENDING: {**dict.fromkeys(_E, IGNORED), **_UNUSED},
}
