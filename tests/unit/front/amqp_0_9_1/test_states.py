"""Every event in every state of a connection and a channel does what the tables say."""

from __future__ import annotations

import pytest

from harebell.front.amqp_0_9_1.channel_states import CHANNEL, ChannelEvent, ChannelState
from harebell.front.amqp_0_9_1.connection_states import CONNECTION, ConnectionEvent
from harebell.front.common.state_table import IGNORED, Fault
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import BODY, HEADER, HEARTBEAT
from harebell.wire.v09.reply_codes import NAMES, reply_text
from harebell.wire.v09.states import ConnectionState
from tests.unit.front.amqp_0_9_1.world import (
    HEADER_0_9_1,
    OctetPeer,
    World,
    frame,
    method_frame,
)

BODY_BYTES = 5
CONTENT_HEADER = frame(HEADER, 1, b"\0\x3c\0\0" + BODY_BYTES.to_bytes(8) + b"\0\0")
START_OK = m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US")

# --- the connection -----------------------------------------------------------------------------

CONNECTION_INPUT: dict[ConnectionEvent, bytes] = {
    ConnectionEvent.START_OK: method_frame(START_OK, 0),
    ConnectionEvent.TUNE_OK: method_frame(m.ConnectionTuneOk(0, 0, 0), 0),
    ConnectionEvent.OPEN: method_frame(m.ConnectionOpen("/"), 0),
    ConnectionEvent.UPDATE_SECRET: method_frame(m.ConnectionUpdateSecret(b"guest", "test"), 0),
    ConnectionEvent.CLOSE: method_frame(m.ConnectionClose(200), 0),
    ConnectionEvent.CLOSE_OK: method_frame(m.ConnectionCloseOk(), 0),
    ConnectionEvent.OTHER_METHOD: method_frame(m.QueueDeclare("q"), 0),
    ConnectionEvent.CONTENT: frame(BODY, 0, b"abc"),
    ConnectionEvent.CHANNEL_FRAME: method_frame(m.ChannelOpen(), 1),
    ConnectionEvent.HEARTBEAT: frame(HEARTBEAT, 0, b""),
    ConnectionEvent.CHANNEL_HEARTBEAT: frame(HEARTBEAT, 1, b""),
    ConnectionEvent.LONG_HEARTBEAT: frame(HEARTBEAT, 0, b"abc"),
    ConnectionEvent.UNKNOWN_FRAME: frame(7, 0, b"abc"),
}
STEPS = (
    (ConnectionState.STARTING, HEADER_0_9_1),
    (ConnectionState.TUNING, CONNECTION_INPUT[ConnectionEvent.START_OK]),
    (ConnectionState.OPENING, CONNECTION_INPUT[ConnectionEvent.TUNE_OK]),
    (ConnectionState.OPEN, CONNECTION_INPUT[ConnectionEvent.OPEN]),
)


def peer_in(world: World, state: ConnectionState) -> OctetPeer:
    """A peer whose connection is in a state, without output left."""
    peer = world.connect()
    for reached, data in STEPS:
        peer.give(data)
        if reached is state:
            break
    if state is ConnectionState.CLOSING:
        peer.connection.force_close("test", world.now)
    elif state is ConnectionState.CLOSED:
        peer.give(CONNECTION_INPUT[ConnectionEvent.CLOSE])
    assert peer.connection.state is state
    peer.frames()
    return peer


def test_the_table_of_connections_has_every_pair() -> None:
    before = {ConnectionState.HEADER, ConnectionState.SECURING}
    assert set(CONNECTION) == set(ConnectionState) - before
    assert all(
        set(row) == set(ConnectionEvent) == set(CONNECTION_INPUT) for row in CONNECTION.values()
    )


@pytest.mark.parametrize("event", ConnectionEvent, ids=lambda event: event.name)
@pytest.mark.parametrize("state", CONNECTION, ids=lambda state: state.name)
def test_every_event_of_a_connection_has_the_outcome_of_its_table(
    state: ConnectionState, event: ConnectionEvent
) -> None:
    world = World()
    peer = peer_in(world, state)
    peer.give(CONNECTION_INPUT[event])
    outcome = CONNECTION[state][event]
    answers = peer.methods()
    if outcome is IGNORED:
        assert (peer.connection.state, answers) == (state, [])
        assert not peer.connection.closing
    elif not isinstance(outcome, Fault):
        assert peer.connection.state is outcome
        assert not any(isinstance(answer, m.ConnectionClose) for answer in answers)
    else:
        error = outcome.error(kind=7, channel=1)
        text = reply_text(error.code, error.text, NAMES)
        closes = [answer for answer in answers if isinstance(answer, m.ConnectionClose)]
        if state is ConnectionState.OPEN or closes:
            assert [(close.reply_code, close.reply_text) for close in closes] == [
                (error.code, text)
            ]
        else:
            # Peers that have not logged in get no reason: the log has it.
            assert peer.connection.closing
            assert any(error.text in line for _, line in world.log)


# --- a channel ----------------------------------------------------------------------------------

CHANNEL_INPUT: dict[ChannelEvent, bytes] = {
    ChannelEvent.OPEN: method_frame(m.ChannelOpen()),
    ChannelEvent.CLOSE: method_frame(m.ChannelClose(200)),
    ChannelEvent.CLOSE_OK: method_frame(m.ChannelCloseOk()),
    ChannelEvent.METHOD: method_frame(m.BasicQos()),
    ChannelEvent.CONTENT_METHOD: method_frame(m.BasicPublish(routing_key="q")),
    ChannelEvent.UNSERVED: method_frame(m.QueueDeclareOk("q", 0, 0)),
    ChannelEvent.HEADER: CONTENT_HEADER,
    ChannelEvent.BODY: frame(BODY, 1, b"abc"),
}
CHANNEL_STEPS = {
    ChannelState.CLOSED: b"",
    ChannelState.OPEN: method_frame(m.ChannelOpen()),
    ChannelState.CONTENT_HEADER: method_frame(m.ChannelOpen())
    + CHANNEL_INPUT[ChannelEvent.CONTENT_METHOD],
    ChannelState.CONTENT_BODY: method_frame(m.ChannelOpen())
    + CHANNEL_INPUT[ChannelEvent.CONTENT_METHOD]
    + CONTENT_HEADER,
    ChannelState.CLOSING: method_frame(m.ChannelOpen()) + method_frame(m.BasicGet("none")),
}


def state_of_channel(peer: OctetPeer) -> ChannelState:
    """What channel 1 of a connection waits for."""
    if 1 in peer.connection.closed_channels:
        return ChannelState.CLOSING
    channel = peer.connection.channels.get(1)
    if channel is None:
        return ChannelState.CLOSED
    if channel.content is None:
        return ChannelState.OPEN
    begun = channel.content.size >= 0
    return ChannelState.CONTENT_BODY if begun else ChannelState.CONTENT_HEADER


def test_the_table_of_channels_has_every_pair() -> None:
    assert set(CHANNEL) == set(ChannelState)
    assert all(set(row) == set(ChannelEvent) == set(CHANNEL_INPUT) for row in CHANNEL.values())


@pytest.mark.parametrize("event", ChannelEvent, ids=lambda event: event.name)
@pytest.mark.parametrize("state", ChannelState, ids=lambda state: state.name)
def test_every_event_of_a_channel_has_the_outcome_of_its_table(
    state: ChannelState, event: ChannelEvent
) -> None:
    peer = peer_in(World(), ConnectionState.OPEN)
    # Otherwise the scanner keeps a publish until its content is there.
    peer.connection.scanner.fast = False
    peer.give(CHANNEL_STEPS[state])
    assert state_of_channel(peer) is state
    peer.frames()
    peer.give(CHANNEL_INPUT[event])
    outcome = CHANNEL[state][event]
    answers = peer.methods()
    if isinstance(outcome, Fault):
        in_content = state in (ChannelState.CONTENT_HEADER, ChannelState.CONTENT_BODY)
        error = outcome.error(60 if in_content else 0)
        (close,) = answers
        assert isinstance(close, m.ConnectionClose)
        assert close.reply_code == error.code
        assert close.reply_text == reply_text(error.code, error.text, NAMES)
        return
    assert state_of_channel(peer) is (state if outcome is IGNORED else outcome)
    assert not any(isinstance(answer, m.ConnectionClose) for answer in answers)
    if outcome is IGNORED:
        assert answers == []
