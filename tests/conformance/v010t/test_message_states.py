"""Every method of class message in every state that a channel can be in, written by hand.

state        how the test gets there
unopened     nothing was sent on the channel
closed       a mistake: the broker has sent channel.close, its close-ok is still under way
detached     the session was suspended, its channel is free
content      a basic.publish whose header has not come
open         channel.open, or session.open
"""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as mm
from harebell.wire.v09.method import METHODS
from harebell.wire.v09.methods_transitional import SessionOpen, SessionSuspend
from tests.conformance.v010t.conftest import Connect
from tests.conformance.v010t.peer import SPEC, Peer
from tests.conformance.v010t.transfers import encoded, transfer

NAMES = [spec.name for spec in SPEC.methods if spec.name.startswith("message.")]
OPEN: dict[str, tuple[int, str] | type[m.Method] | None] = {
    "message.transfer": None,
    "message.consume": (404, "channel"),
    "message.cancel": None,
    "message.get": (404, "channel"),
    "message.recover": None,
    "message.open": None,
    "message.close": (503, "connection"),
    "message.append": (503, "connection"),
    "message.checkpoint": (503, "connection"),
    "message.resume": mm.MessageOffset,
    "message.qos": None,
    "message.empty": (503, "connection"),
    "message.reject": (503, "connection"),
    "message.offset": (503, "connection"),
}
"""What comes of a method with a queue that there is not: nothing, a reply, or an error."""

every_method = pytest.mark.parametrize("name_of", NAMES)


def payload(name: str) -> bytes:
    """The method with a queue that there is not."""
    if name == "message.transfer":
        return encoded("nowhere", b"body")
    kind = METHODS[name]
    fields = {"queue": "nowhere"} if "queue" in kind.__struct_fields__ else {}
    return SPEC.encode(kind(**fields))


def test_every_method_has_an_expectation() -> None:
    assert set(NAMES) == set(OPEN)


@every_method
def test_on_a_channel_that_is_not_open_the_connection_ends(memory_peer: Peer, name_of: str) -> None:
    memory_peer.payload(payload(name_of), 7)
    memory_peer.expect_connection_close(504, name_of)


@every_method
def test_on_a_channel_that_was_closed_it_is_ignored(memory_peer: Peer, name_of: str) -> None:
    transfer(memory_peer, "k", destination="nowhere")
    memory_peer.expect(m.ChannelClose, reply_code=404)
    memory_peer.payload(payload(name_of))
    memory_peer.expect_silence()
    memory_peer.send(m.ChannelCloseOk())
    memory_peer.ask(m.ChannelOpen())


@every_method
def test_on_a_channel_whose_session_is_detached_the_connection_ends(
    memory_peer: Peer, name_of: str
) -> None:
    memory_peer.ask(SessionOpen(100), 2)
    memory_peer.ask(SessionSuspend(), 2)
    memory_peer.payload(payload(name_of), 2)
    memory_peer.expect_connection_close(504, name_of)


@every_method
def test_amid_a_content_the_connection_ends(memory_peer: Peer, name_of: str) -> None:
    memory_peer.send(m.BasicPublish(routing_key="k"))
    memory_peer.payload(payload(name_of))
    memory_peer.expect_connection_close(503, "basic.publish")


@every_method
@pytest.mark.parametrize("way", ["channel", "session"])
def test_on_an_open_channel_it_is_done(connect_memory: Connect, name_of: str, way: str) -> None:
    peer = connect_memory().open(channels=())
    if way == "channel":
        peer.ask(m.ChannelOpen())
    else:
        peer.ask(SessionOpen(0))
    peer.payload(payload(name_of))
    expected = OPEN[name_of]
    if expected is None:
        peer.settle()
    elif isinstance(expected, type):
        peer.expect(expected)
        peer.settle()
    elif expected[1] == "connection":
        peer.expect_connection_close(expected[0], name_of)
    elif way == "session":
        peer.expect_session_closed(expected[0])
    else:
        peer.expect_channel_close(expected[0], name_of)
