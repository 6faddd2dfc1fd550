"""Every event in every state of a channel of AMQP 0-10 does what the table says."""

from __future__ import annotations

import pytest

from harebell.front.amqp_0_10.session_states import (
    CHANNEL,
    NOT_ATTACHED,
    ChannelEvent,
    ChannelState,
)
from harebell.front.common.state_table import IGNORED, Fault
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010.composites import Composite
from tests.unit.front.amqp_0_9_1.world import World
from tests.unit.front.amqp_0_10.peer import SessionPeer

INPUT: dict[ChannelEvent, Composite] = {
    ChannelEvent.ATTACH: k.SessionAttach(b"s"),
    ChannelEvent.ATTACHED: k.SessionAttached(b"s"),
    ChannelEvent.DETACH: k.SessionDetach(b"s"),
    ChannelEvent.DETACHED: k.SessionDetached(b"s", 0),
    ChannelEvent.REQUEST_TIMEOUT: k.SessionRequestTimeout(60),
    ChannelEvent.TIMEOUT: k.SessionTimeout(60),
    ChannelEvent.COMMAND_POINT: k.SessionCommandPoint(1, 0),
    ChannelEvent.EXPECTED: k.SessionExpected(((0, 0),)),
    ChannelEvent.CONFIRMED: k.SessionConfirmed(),
    ChannelEvent.COMPLETED: k.SessionCompleted(),
    ChannelEvent.KNOWN_COMPLETED: k.SessionKnownCompleted(),
    ChannelEvent.FLUSH: k.SessionFlush(expected=True),
    ChannelEvent.GAP: k.SessionGap(),
    ChannelEvent.COMMAND: c.ExecutionSync(),
}


def peer_in(world: World, state: ChannelState) -> SessionPeer:
    """A peer whose channel 1 is in a state."""
    peer = SessionPeer(world).open()
    if state is ChannelState.ATTACHED:
        peer.attach()
    elif state is ChannelState.ENDING:
        peer.attach()
        peer.ask(c.QueueDelete("none"))
    elif state is ChannelState.RESUMING:
        # The command that the broker has sent, a result, is kept until the peer confirms it.
        peer.attach(timeout=60)
        peer.ask(c.QueueQuery("q"), sync=True)
        peer.ask(k.SessionDetach(b"s"))
        peer.ask(k.SessionAttach(b"s"))
    assert peer.connection.channel_state(1) is state
    return peer


def test_the_table_has_every_pair() -> None:
    assert set(CHANNEL) == set(ChannelState)
    assert all(set(row) == set(ChannelEvent) == set(INPUT) for row in CHANNEL.values())


@pytest.mark.parametrize("event", ChannelEvent, ids=lambda event: event.name)
@pytest.mark.parametrize("state", ChannelState, ids=lambda state: state.name)
def test_every_event_of_a_channel_has_the_outcome_of_the_table(
    state: ChannelState, event: ChannelEvent
) -> None:
    peer = peer_in(World(), state)
    answers = peer.ask(INPUT[event])
    outcome, after = CHANNEL[state][event], peer.connection.channel_state(1)
    if outcome is IGNORED:
        assert (after, answers) == (state, [])
    elif outcome is NOT_ATTACHED:
        assert (after, answers) == (ChannelState.ENDING, [k.SessionDetached(b"", 3)])
    elif isinstance(outcome, Fault):
        *exceptions, detach = (a for a in answers if not isinstance(a, k.SessionCompleted))
        assert (after, detach) == (ChannelState.ENDING, k.SessionDetach(b"s"))
        # A session that resumes sends no commands yet, and so no exception.
        assert len(exceptions) == (state is ChannelState.ATTACHED)
        for exception in exceptions:
            assert isinstance(exception, c.ExecutionException)
            assert exception.error_code == outcome.code
            assert (exception.description or "").endswith(outcome.text)
    else:
        assert after is outcome
        assert not any(isinstance(answer, c.ExecutionException) for answer in answers)


def test_a_session_that_another_connection_attaches_with_force_is_ending_where_it_was() -> None:
    world = World()
    first, second = peer_in(world, ChannelState.ATTACHED), SessionPeer(world).open()
    second.ask(k.SessionAttach(b"s", force=True))
    assert first.taken() == [k.SessionDetached(b"s", 1)]
    assert first.connection.channel_state(1) is ChannelState.ENDING
    assert second.connection.channel_state(1) is ChannelState.ATTACHED


def test_a_name_that_is_attached_elsewhere_leaves_the_channel_detached() -> None:
    world = World()
    peer_in(world, ChannelState.ATTACHED)
    second = SessionPeer(world).open()
    assert second.ask(k.SessionAttach(b"s")) == [k.SessionDetached(b"s", 1)]
    assert second.connection.channel_state(1) is ChannelState.DETACHED
