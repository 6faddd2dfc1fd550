"""Every method of 0-8 and 0-9 in every state of connection and channel.

state        what the broker waits for      anything else
STARTING     start-ok                       the end without a word
TUNING       tune-ok                        the end without a word
OPENING      open                           504, for the client has logged in
OPEN         on channel 0: close            504
not open     channel.open                   504
CONTENT      header and body                505 as 503, which 0-8 has in its place
CLOSING      close-ok                       nothing
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.frames import METHOD, frame
from tests.conformance.raw import start_ok
from tests.conformance.sites import MemorySite
from tests.conformance.v08.peer import Peer8, Peer9

CASES = [(kind, spec.name) for kind in (Peer8, Peer9) for spec in kind.SPEC.methods]
SENT: dict[str, m.Method] = {
    "connection.start-ok": start_ok(),
    "connection.tune-ok": m.ConnectionTuneOk(0, 0, 0),
    "connection.open": m.ConnectionOpen("/"),
}
"""Methods that need more than their zero values to be right in their place."""
ENDS = ("connection.close", "connection.close-ok")


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].SPEC.version} {case[1]}")
def case(request: pytest.FixtureRequest) -> Iterator[tuple[MemorySite, Peer8, str]]:
    """A peer that has said nothing, and a method."""
    kind, name = request.param
    site = MemorySite()
    yield site, kind(site, site.connect()), name
    faults = [text for _, text in site.log if "internal error" in text or " at /" in text]
    assert not faults


Case = tuple[MemorySite, Peer8, str]


def _send(peer: Peer8, name: str, channel: int) -> None:
    spec = peer.SPEC.named(name)
    method = SENT.get(name) or spec.type()
    peer.send_bytes(frame(METHOD, channel, peer.SPEC.encode(method)))


def starting(peer: Peer8) -> None:
    peer.greet()


def tuning(peer: Peer8) -> None:
    starting(peer)
    peer.log_in()


def opening(peer: Peer8) -> None:
    tuning(peer)
    peer.send(m.ConnectionTuneOk(0, 0, 0))


NEXT = {
    starting: ("connection.start-ok", m.ConnectionTune),
    tuning: ("connection.tune-ok", None),
    opening: ("connection.open", m.ConnectionOpenOk),
}


@pytest.mark.rule("0-8#016")
@pytest.mark.parametrize("state", NEXT, ids=lambda state: state.__name__)
def test_before_the_connection_is_open_only_its_next_step_is_taken(
    case: Case, state: Callable[[Peer8], None]
) -> None:
    _, peer, name = case
    state(peer)
    step, answer = NEXT[state]
    _send(peer, name, 0)
    if name == step:
        if answer is not None:
            peer.expect(answer)
    elif name == "connection.close":
        peer.expect(m.ConnectionCloseOk)
    elif state is opening:
        peer.expect(m.ConnectionClose, reply_code=504)
    else:
        peer.expect_closed()


def test_on_channel_0_of_an_open_connection_there_is_its_end_and_nothing_else(case: Case) -> None:
    _, peer, name = case
    peer.open()
    peer.opened = False
    _send(peer, name, 0)
    if name == "connection.close":
        peer.expect(m.ConnectionCloseOk)
        peer.expect_parting()
    elif name == "connection.update-secret":
        peer.expect(m.ConnectionUpdateSecretOk)
    else:
        peer.expect(m.ConnectionClose, reply_code=504)


def test_a_channel_that_is_not_open_can_only_be_opened(case: Case) -> None:
    _, peer, name = case
    peer.open()
    peer.opened = False
    _send(peer, name, 5)
    if name == "channel.open":
        peer.expect(m.ChannelOpenOk, 5)
    else:
        close = peer.expect(m.ConnectionClose, reply_code=504)
        assert close.reply_text == "CHANNEL_ERROR - expected 'channel.open'"


def test_methods_of_servers_have_no_place_on_an_open_channel(case: Case) -> None:
    _, peer, name = case
    if peer.SPEC.named(name).from_client:
        return
    peer.open()
    peer.opened = False
    _send(peer, name, 1)
    peer.expect(m.ConnectionClose, reply_code=503)


def test_whatever_a_client_says_on_an_open_channel_is_answered_as_the_version_has_it(
    case: Case,
) -> None:
    _, peer, name = case
    spec = peer.SPEC.named(name)
    if not spec.from_client or name.startswith("connection."):
        return
    peer.open()
    peer.opened = False
    _send(peer, name, 1)
    found = peer.reader.next() or peer._frame(0.0)
    if found is None:
        # Only Qpid's clients, which show themselves, are answered a basic.recover of 0-8.
        silent = name == "basic.recover" or name.startswith(("file.", "test."))
        assert not spec.synchronous or spec.has_content or silent
        return
    method = peer.SPEC.decode(found.payload)
    allowed = {*spec.responses, "channel.close", "connection.close"}
    assert method.NAME in allowed, method
    assert getattr(method, "reply_code", 0) != 541


def test_within_a_content_every_method_is_out_of_order(case: Case) -> None:
    _, peer, name = case
    peer.open()
    peer.opened = False
    peer.send(m.BasicPublish("", "q"))
    _send(peer, name, 1)
    peer.expect(m.ConnectionClose, reply_code=503)


def test_after_the_brokers_close_of_a_channel_only_the_end_counts(case: Case) -> None:
    _, peer, name = case
    peer.open()
    peer.send(m.QueueDeclare("missing", passive=True))
    peer.expect(m.ChannelClose, reply_code=404)
    _send(peer, name, 1)
    if name == "channel.close":
        peer.expect(m.ChannelCloseOk)
    peer.expect_silence()


def test_after_the_brokers_close_of_the_connection_only_the_end_counts(case: Case) -> None:
    _, peer, name = case
    peer.open()
    peer.opened = False
    peer.send(m.BasicConsume(""))
    peer.expect(m.ConnectionClose)
    _send(peer, name, 0)
    if name == "connection.close-ok":
        peer.expect_closed()
        return
    if name == "connection.close":
        peer.expect(m.ConnectionCloseOk)
    assert peer._frame(0.0) is None
    assert not peer.ended
    assert name not in ENDS or name == "connection.close"
