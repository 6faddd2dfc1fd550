"""The class session: opened, detached, resumed with what is missing, destroyed (class 20)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.front.limits import SESSION_LIFETIME_SECONDS, SESSION_REPLAY_BYTES, SESSIONS_KEPT
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from tests.conformance.frames import METHOD, content_header, frame
from tests.conformance.frames import body as body_frame
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.peer import SPEC, Peer

Connect = Callable[[], Peer]


@pytest.fixture
def bare(connect: Connect) -> Peer:
    """An open connection without a channel."""
    return connect().open(channels=())


@pytest.fixture
def memory_bare(connect_memory: Connect) -> Peer:
    """The same, in memory."""
    return connect_memory().open(channels=())


def resumed(peer: Peer, identifier: bytes, seen: int, channel: int = 1) -> int:
    """Resume and say how many frames we have; returns how many the broker has."""
    peer.ask(s.SessionResume(identifier), channel)
    theirs = peer.expect(s.SessionAck, channel, seen_frame_set=()).cumulative_seen_mark
    mark = peer.expect(s.SessionHighWaterMark, channel).last_sent_mark
    assert mark >= seen
    peer.send(s.SessionAck(seen), channel)
    return theirs


# --- opening and closing ------------------------------------------------------------------------


def test_an_attached_session_has_a_name_of_its_own_and_serves_commands(bare: Peer, name: str):
    first = bare.attach(channel=1)
    second = bare.attach(channel=2)
    assert first.session_id != second.session_id
    assert bare.queue(name, channel=1) == name
    assert bare.settle(1).cumulative_execution_mark == 1
    assert bare.settle(2).cumulative_execution_mark == 0


def test_a_session_id_is_a_random_uuid(bare: Peer):
    identifier = bare.attach().session_id
    assert identifier[6] >> 4 == 4
    assert identifier[8] >> 6 == 0b10


@pytest.mark.rule("0-10t#028")
def test_opening_a_session_where_there_is_one_ends_the_connection(bare: Peer):
    bare.attach()
    bare.send(s.SessionOpen())
    bare.expect_connection_close(504, "session.open", "channel busy")


@pytest.mark.rule("0-10t#028")
def test_opening_a_session_on_an_opened_channel_ends_the_connection(peer: Peer):
    peer.send(s.SessionOpen())
    peer.expect_connection_close(504, "session.open", "channel busy")


def test_close_destroys_the_session_and_the_number_is_free(bare: Peer, name: str):
    identifier = bare.attach(60).session_id
    bare.ask(s.SessionClose())
    bare.attach()
    bare.send(s.SessionResume(identifier), 2)
    bare.expect_session_closed(404, "no session", channel=2)


def test_closed_is_answered_with_success(bare: Peer):
    bare.attach()
    assert bare.ask(s.SessionClose()) == s.SessionClosed(200, "ok")


def test_a_client_may_destroy_its_session_without_asking(bare: Peer, name: str):
    bare.attach()
    bare.queue(name)
    bare.publish("", name, b"back")
    bare.get(name)
    bare.send(s.SessionClosed(541, "something broke"))
    bare.attach()
    assert bare.get(name, no_ack=True).method.redelivered


def test_an_error_destroys_the_session_and_what_follows_is_ignored(bare: Peer, name: str):
    bare.attach(60)
    bare.send(m.QueueDeclare(f"{name}-none", passive=True))
    bare.publish("", name, b"ignored")
    bare.send(s.ExecutionFlush())
    bare.expect_session_closed(404, "NOT_FOUND", f"{name}-none")
    bare.attach()
    assert bare.queue(name) == name


def test_the_session_class_needs_a_session(peer: Peer):
    peer.send(s.SessionPing())
    peer.expect_connection_close(503, "session.ping", "no session")


def test_the_channel_class_is_not_for_sessions(bare: Peer):
    bare.attach()
    bare.send(m.ChannelClose())
    bare.expect_connection_close(503, "channel.close", "session.open")


# --- flow, ping and pong ------------------------------------------------------------------------


@pytest.mark.rule("0-10t#029", "0-10t#030")
def test_a_session_is_active_until_its_client_pauses_it(bare: Peer, name: str):
    bare.attach()
    bare.queue(name)
    bare.consume(name)
    bare.publish("", name, b"one")
    bare.expect_delivery(b"one")
    assert not bare.ask(s.SessionFlow(False)).active
    bare.publish("", name, b"two")
    bare.settle()
    bare.expect_silence()
    assert bare.ask(s.SessionFlow(True)).active
    bare.expect_delivery(b"two")


def test_a_ping_is_answered_and_a_pong_is_not(bare: Peer):
    bare.attach()
    bare.send(s.SessionPing())
    bare.expect(s.SessionPong)
    bare.send(s.SessionPong())
    bare.expect_silence()


# --- detaching and resuming ---------------------------------------------------------------------


def test_a_suspended_session_lives_and_its_channel_is_free(bare: Peer, name: str):
    identifier = bare.attach(60).session_id
    bare.queue(name)
    bare.ask(s.SessionSuspend())
    bare.attach()
    bare.send(s.SessionAck(0))
    bare.ask(s.SessionClose())
    theirs = resumed(bare, identifier, seen=1, channel=3)
    assert theirs == 1
    bare._sent[3], bare._received[3] = 1, 1
    assert bare.queue(name, channel=3, passive=True) == name
    assert bare.settle(3).cumulative_execution_mark == 2


def test_without_a_lifetime_a_suspended_session_is_gone(bare: Peer):
    identifier = bare.attach(0).session_id
    bare.ask(s.SessionSuspend())
    bare.send(s.SessionResume(identifier))
    bare.expect_session_closed(404, "no session")


def test_a_session_survives_its_connection_with_what_it_has_not_acknowledged(
    connect: Connect, name: str
):
    peer = connect().open(channels=())
    identifier = peer.attach(60).session_id
    peer.queue(name)
    peer.consume(name)
    for body in (b"one", b"two"):
        peer.publish("", name, body)
    first = peer.expect_delivery(b"one").method
    peer.expect_delivery(b"two")
    peer.drop()
    again = connect().open(channels=())
    # declare-ok, consume-ok and the delivery of "one" (method, header, body) have arrived.
    _resume_when_lost(again, identifier, seen=5)
    assert not again.expect_delivery(b"two").method.redelivered
    again.send(m.BasicAck(first.delivery_tag))
    again.send(m.BasicAck(first.delivery_tag + 1))
    again._sent[1] = 6
    again.settle()
    assert again.ask(m.QueueDeclare(name, passive=True)).message_count == 0


def _resume_when_lost(peer: Peer, identifier: bytes, seen: int) -> int:
    """The same as `resumed`, as soon as the broker knows that the connection is lost."""
    for _ in range(3_000):
        peer.send(s.SessionResume(identifier))
        found = SPEC.decode(peer.next_frame("the answer to session.resume").payload)
        if isinstance(found, s.SessionAttached):
            theirs = peer.expect(s.SessionAck).cumulative_seen_mark
            peer.expect(s.SessionHighWaterMark)
            peer.send(s.SessionAck(seen))
            return theirs
        assert isinstance(found, s.SessionClosed)
        assert found.reply_code == 405
    raise AssertionError("the session stays busy")


@pytest.mark.rule("0-10t#033")
def test_a_session_that_is_attached_is_busy(connect: Connect):
    peer, other = connect().open(channels=()), connect().open(channels=())
    identifier = peer.attach(60).session_id
    other.send(s.SessionResume(identifier))
    other.expect_session_closed(405, "session busy")
    assert other.attach().session_id != identifier


def test_a_session_id_may_be_a_long_string(memory_bare: Peer):
    identifier = memory_bare.attach(60).session_id
    memory_bare.ask(s.SessionSuspend())
    payload = bytes.fromhex("0014003200000010") + identifier
    memory_bare.send_bytes(frame(METHOD, 1, payload))
    memory_bare.expect(s.SessionAttached, session_id=identifier)
    memory_bare.expect(s.SessionAck, cumulative_seen_mark=0)


def test_a_session_of_another_user_is_not_found(memory: MemorySite, connect_memory: Connect):
    memory.users.add("other", "secret", vhosts=("/",))
    peer = connect_memory().open(channels=())
    identifier = peer.attach(60).session_id
    peer.ask(s.SessionSuspend())
    other = connect_memory().open(channels=(), user="other", password="secret")
    other.send(s.SessionResume(identifier))
    other.expect_session_closed(404, "no session")


@pytest.mark.rule("0-10t#027")
def test_the_timer_runs_only_while_the_session_is_detached(memory: MemorySite, memory_bare: Peer):
    identifier = memory_bare.attach(10).session_id
    memory.pass_time(30)
    memory_bare.ask(s.SessionSuspend())
    memory.pass_time(8)
    memory_bare.ask(s.SessionResume(identifier))
    memory_bare.expect(s.SessionAck)
    memory.pass_time(30)
    memory_bare.ask(s.SessionSuspend())
    memory.pass_time(11)
    memory_bare.send(s.SessionResume(identifier))
    memory_bare.expect_session_closed(404, "no session")


@pytest.mark.rule("0-10t#027")
def test_when_the_time_is_over_everything_of_the_session_ends(
    memory: MemorySite, connect_memory: Connect
):
    peer = connect_memory().open(channels=())
    peer.attach(10)
    peer.queue("shared")
    peer.queue("own", exclusive=True, auto_delete=True)
    peer.publish("", "shared", b"back")
    peer.get("shared")
    peer.drop()
    other = connect_memory().open()
    assert other.ask(m.QueueDeclare("shared", passive=True)).message_count == 0
    memory.pass_time(11)
    assert other.get("shared").method.redelivered
    other.send(m.QueueDeclare("own", passive=True))
    other.expect_channel_close(404, "queue.declare")
    assert memory.registry.sessions == {}


def test_a_lifetime_without_end_has_one(bare: Peer):
    assert bare.attach(2**32 - 1).detached_lifetime == SESSION_LIFETIME_SECONDS


def test_beyond_so_many_sessions_none_gets_a_lifetime(memory: MemorySite, memory_bare: Peer):
    memory.registry.kept_sessions.add("guest", SESSIONS_KEPT)
    assert memory_bare.attach(60).detached_lifetime == 0


def test_an_exclusive_queue_waits_for_its_session(connect_memory: Connect):
    peer = connect_memory().open(channels=())
    identifier = peer.attach(60).session_id
    peer.queue("own", exclusive=True, auto_delete=True)
    peer.drop()
    other = connect_memory().open()
    other.send(m.QueueDeclare("own", passive=True))
    other.expect_channel_close(405, "queue.declare")
    again = connect_memory().open(channels=())
    resumed(again, identifier, seen=1)
    assert again.queue("own", passive=True) == "own"


@pytest.mark.parametrize("auto_delete", [True, False])
def test_when_the_session_ends_its_exclusive_queue_is_gone_or_free(
    memory: MemorySite, connect_memory: Connect, auto_delete: bool
):
    peer, other = connect_memory().open(channels=()), connect_memory().open()
    peer.attach(10)
    peer.queue("own", exclusive=True, auto_delete=auto_delete)
    peer.drop()
    other.send(m.QueueDeclare("own", passive=True))
    other.expect_channel_close(405, "queue.declare")
    memory.pass_time(11)
    other.ask(m.ChannelOpen())
    other.send(m.QueueDeclare("own", passive=True))
    if auto_delete:
        other.expect_channel_close(404, "queue.declare")
    else:
        other.expect(m.QueueDeclareOk)


def test_a_consumer_of_a_detached_session_gets_nothing_and_everything_after(
    connect_memory: Connect,
):
    peer, other = connect_memory().open(channels=()), connect_memory().open()
    identifier = peer.attach(60).session_id
    peer.queue("q")
    peer.consume("q")
    peer.drop()
    other.publish("", "q", b"later")
    assert other.ask(m.QueueDeclare("q", passive=True)).message_count == 1
    again = connect_memory().open(channels=())
    again.ask(s.SessionResume(identifier))
    again.expect(s.SessionAck, cumulative_seen_mark=2)
    again.expect(s.SessionHighWaterMark, last_sent_mark=2)
    again.send(s.SessionAck(2))
    again.expect_delivery(b"later")


def test_nothing_leaves_a_resumed_session_before_the_client_says_what_it_has(
    connect_memory: Connect,
):
    peer, other = connect_memory().open(channels=()), connect_memory().open()
    identifier = peer.attach(60).session_id
    peer.queue("q")
    peer.drop()
    again = connect_memory().open(channels=())
    again.ask(s.SessionResume(identifier))
    again.expect(s.SessionAck)
    again.expect(s.SessionHighWaterMark, last_sent_mark=1)
    again.send(m.QueueDeclare("q", passive=True))
    again.expect_silence()
    again.send(s.SessionAck(0))
    again.expect(m.QueueDeclareOk, message_count=0)
    again.expect(m.QueueDeclareOk, message_count=0)
    assert other.queue("q", passive=True) == "q"


def test_a_content_that_was_cut_goes_on_in_the_resumed_session(connect_memory: Connect):
    peer = connect_memory().open(channels=())
    identifier = peer.attach(60).session_id
    peer.queue("q")
    publish = SPEC.encode(m.BasicPublish("", "q"))
    peer.payload(publish)
    peer.send_bytes(content_header(6), body_frame(b"one"))
    peer.drop()
    again = connect_memory().open(channels=())
    assert resumed(again, identifier, seen=1) == 4
    again.send_bytes(body_frame(b"two"))
    again._sent[1] = 2
    assert again.settle().cumulative_execution_mark == 2
    assert again.get("q", no_ack=True).body == b"onetwo"


# --- what has arrived ---------------------------------------------------------------------------


def test_solicit_ack_and_high_water_mark_are_answered_with_what_has_come(bare: Peer, name: str):
    bare.attach()
    bare.queue(name)
    bare.publish("", name, b"body")
    for asked in (s.SessionSolicitAck(), s.SessionHighWaterMark(4)):
        bare.send(asked)
        bare.expect(s.SessionAck, cumulative_seen_mark=4, seen_frame_set=())


@pytest.mark.rule("0-10t#034")
@pytest.mark.parametrize("ranges", [((1, 2),), ((0, 0),), ((5, 4),)])
def test_a_set_that_covers_the_number_after_the_mark_ends_the_connection(
    bare: Peer, ranges: tuple[tuple[int, int], ...]
):
    bare.attach(60)
    bare.send(s.SessionAck(0, ranges))
    bare.expect_connection_close(502, "session.ack", "seen-frame-set")


@pytest.mark.rule("0-10t#034")
def test_over_tcp_nothing_arrives_out_of_order(bare: Peer):
    bare.attach(60)
    bare.send(s.SessionAck(0, ((2, 3),)))
    bare.expect_connection_close(502, "session.ack", "out of order")


def test_frames_that_were_not_sent_cannot_have_arrived(bare: Peer):
    bare.attach(60)
    bare.send(s.SessionAck(1))
    bare.expect_connection_close(502, "session.ack", "frame 1 was not sent")


def test_a_client_that_acknowledges_nothing_is_asked_and_gets_nothing_more(memory_bare: Peer):
    memory_bare.attach(60)
    memory_bare.queue("q")
    memory_bare.consume("q", no_ack=True)
    pieces = 10
    body = bytes(SESSION_REPLAY_BYTES // 8)
    for _ in range(pieces):
        memory_bare.publish("", "q", body)
    # declare-ok and consume-ok have come before.
    arrived, came, asked = 2, 0, False
    while not asked:
        found = memory_bare.next_frame("a delivery, or the question what has come")
        is_method = found.kind == METHOD
        asked = is_method and isinstance(SPEC.decode(found.payload), s.SessionSolicitAck)
        came += is_method and not asked
        arrived += not asked
    assert 0 < came < pieces
    while came < 8:
        found = memory_bare.next_frame("a delivery")
        came += found.kind == METHOD
        arrived += 1
    for _ in range(-(-len(body) // (memory_bare.frame_max - 8)) + 1):
        memory_bare.next_frame("the rest of the last content")
        arrived += 1
    assert memory_bare.ask(m.QueueDeclare("q", passive=True)).message_count == pieces - came
    memory_bare.send(s.SessionAck(arrived))
    memory_bare.expect_delivery(body)
    memory_bare.expect_delivery(body)
