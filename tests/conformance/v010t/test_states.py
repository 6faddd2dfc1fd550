"""Every method in every state of a channel and a connection, by hand: what goes on, what ends.

    state      how the test gets there
    STARTING   the protocol header                 OPENED    channel.open
    TUNING     start-ok                            ATTACHED  session.open
    OPENING    tune-ok                             CONTENT   basic.publish without its header
    FREE       a channel that nothing was opened on
    CLOSING    a mistake, answered by channel.close

The expectations are not taken from the broker's tables, so that a mistake there shows here.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.method import METHODS
from tests.conformance.frames import METHOD, frame
from tests.conformance.raw import ids
from tests.conformance.v010t.peer import Peer

Connect = Callable[[], Peer]

NAMES = [spec.name for spec in SPEC.methods]
IN_CHANNELS = [name for name in NAMES if not name.startswith("connection.")]
ON_ZERO = [name for name in NAMES if name.startswith("connection.")]
OF_SERVER = {spec.name for spec in SPEC.methods if not spec.from_client}
OPENING = {"channel.open", "session.open", "session.resume"}
ON_CHANNELS_ONLY = {"channel.flow", "channel.flow-ok", "channel.close", "channel.close-ok"}
"""Methods that a channel with a session does not know."""
CLASS_SESSION = {name for name in IN_CHANNELS if name.startswith("session.")}
HARD_WITH_ZEROS = {
    **dict.fromkeys(("exchange.declare", "exchange.delete"), 530),
    **dict.fromkeys((f"queue.{name}" for name in ("bind", "unbind", "purge", "delete")), 530),
    **dict.fromkeys(("basic.consume", "basic.get", "message.consume", "message.get"), 530),
    **dict.fromkeys(("file.consume", "stream.consume"), 530),
    **dict.fromkeys(("file.open-ok", "file.stage"), 503),
    **dict.fromkeys((f"message.{name}" for name in ("close", "append", "checkpoint")), 503),
    **dict.fromkeys((f"message.{name}" for name in ("empty", "reject", "offset")), 503),
}
"""Methods that zeros make wrong for the whole connection: no names, nothing that they answer."""
EXPECTED_ON_ZERO = {
    "STARTING": {"connection.start-ok", "connection.close"},
    "TUNING": {"connection.tune-ok", "connection.close"},
    "OPENING": {"connection.open", "connection.close"},
    "OPEN": {"connection.close"},
}


def payload(name: str) -> bytes:
    """A method of zeros, which every state can decode."""
    return SPEC.encode(METHODS[name]())


def closed_with(peer: Peer) -> m.ConnectionClose:
    """The connection.close that comes, perhaps after other answers."""
    while True:
        found = peer.next_frame("connection.close")
        if found.channel == 0:
            method = SPEC.decode(found.payload)
            assert isinstance(method, m.ConnectionClose), method
            peer.opened = False
            return method


def refused(peer: Peer, name: str, *codes: int) -> None:
    """The connection is closed with one of these codes, and names the method."""
    close = closed_with(peer)
    assert close.reply_code in codes, close
    assert (close.class_id, close.method_id) in (ids(name, SPEC), (0, 0))


def lives(peer: Peer) -> None:
    """The connection goes on, whatever was answered on channel 1."""
    peer.send(m.ChannelOpen(), 9)
    while True:
        found = peer.next_frame("channel.open-ok")
        assert found.channel, f"the connection is closed: {SPEC.decode(found.payload)}"
        if found.channel == 9:
            break
    peer.opened = False


@pytest.fixture
def bare(connect_memory: Connect) -> Peer:
    """An open connection without a channel."""
    return connect_memory().open(channels=())


@pytest.mark.parametrize("name", IN_CHANNELS)
def test_on_a_free_channel_only_opening_goes_on(bare: Peer, name: str):
    bare.send_bytes(frame(METHOD, 1, payload(name)))
    if name in OPENING:
        lives(bare)
    else:
        refused(bare, name, 504)


@pytest.mark.parametrize("name", IN_CHANNELS)
def test_on_an_opened_channel_sessions_and_answers_of_the_server_end_it(bare: Peer, name: str):
    bare.ask(m.ChannelOpen())
    bare.send_bytes(frame(METHOD, 1, payload(name)))
    if name in OPENING:
        refused(bare, name, 504)
    elif name in CLASS_SESSION or name in OF_SERVER:
        refused(bare, name, 503)
    elif name in HARD_WITH_ZEROS:
        refused(bare, name, HARD_WITH_ZEROS[name])
    else:
        lives(bare)


@pytest.mark.parametrize("name", IN_CHANNELS)
def test_on_an_attached_channel_the_channel_class_and_answers_end_it(bare: Peer, name: str):
    bare.attach()
    bare.send_bytes(frame(METHOD, 1, payload(name)))
    if name in OPENING:
        refused(bare, name, 504)
    elif name in ON_CHANNELS_ONLY or name in OF_SERVER:
        refused(bare, name, 503)
    elif name in HARD_WITH_ZEROS:
        refused(bare, name, HARD_WITH_ZEROS[name])
    else:
        lives(bare)


@pytest.mark.parametrize("name", IN_CHANNELS)
def test_within_a_content_no_method_goes_on(bare: Peer, name: str):
    bare.ask(m.ChannelOpen())
    bare.queue("q")
    bare.payload(SPEC.encode(m.BasicPublish("", "q")))
    bare.send_bytes(frame(METHOD, 1, payload(name)))
    if name in CLASS_SESSION:
        assert closed_with(bare).reply_code in (503, 504)
    else:
        close = closed_with(bare)
        assert (close.reply_code, close.class_id, close.method_id) == (503, 60, 40)


@pytest.mark.parametrize("name", IN_CHANNELS)
def test_after_our_channel_close_everything_but_its_end_is_ignored(bare: Peer, name: str):
    bare.ask(m.ChannelOpen())
    bare.send(m.QueueDeclare("none", passive=True))
    bare.expect(m.ChannelClose, reply_code=404)
    bare.send_bytes(frame(METHOD, 1, payload(name)))
    if name == "channel.close":
        bare.expect(m.ChannelCloseOk)
    if name == "channel.close-ok":
        bare.ask(m.ChannelOpen())
    else:
        bare.expect_silence()
        bare.send(m.ChannelCloseOk())
        bare.ask(m.ChannelOpen())


@pytest.mark.parametrize("name", IN_CHANNELS)
def test_after_our_session_closed_everything_but_opening_is_ignored(bare: Peer, name: str):
    bare.attach()
    bare.send(m.QueueDeclare("none", passive=True))
    bare.expect_session_closed(404)
    bare.send_bytes(frame(METHOD, 1, payload(name)))
    if name == "channel.open":
        bare.expect(m.ChannelOpenOk)
    elif name == "session.open":
        bare.expect(s.SessionAttached)
    elif name == "session.resume":
        bare.expect_session_closed(404)
    else:
        bare.expect_silence()
        bare.attach()


@pytest.mark.parametrize("state", EXPECTED_ON_ZERO)
@pytest.mark.parametrize("name", NAMES)
def test_on_channel_zero_each_state_takes_its_own_methods(
    connect_memory: Connect, name: str, state: str
):
    peer = connect_memory()
    peer.greet()
    if state != "STARTING":
        tune = peer.log_in()
        if state != "TUNING":
            peer.send(m.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
            if state == "OPEN":
                peer.ask(m.ConnectionOpen("/"))
    peer.send_bytes(frame(METHOD, 0, payload(name)))
    if name == "connection.close":
        peer.expect(m.ConnectionCloseOk)
        peer.expect_parting()
    elif name in EXPECTED_ON_ZERO[state]:
        # Zeros log nobody in, but are no mistake of the protocol.
        found = peer._frame(1.0)
        assert found is None or b"\x01\xf7" not in found.payload
    elif state in ("OPENING", "OPEN"):
        assert closed_with(peer).reply_code in (503, 504)
    else:
        peer.expect_closed()


@pytest.mark.parametrize("name", ON_ZERO)
def test_methods_of_connections_have_no_place_on_channels(bare: Peer, name: str):
    bare.ask(m.ChannelOpen())
    bare.send_bytes(frame(METHOD, 1, payload(name)))
    refused(bare, name, 503, 504)
