"""Sessions of AMQP 0-10: attaching, numbering, completing, coming back."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.amqp_0_10.session_states import CHANNEL, EVENTS, ChannelState
from harebell.front.common.state_table import IGNORED, Fault
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from tests.conformance.arriving import unique
from tests.conformance.sites import MemorySite
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.raw import COMMAND, CONTROL, Peer010, frame
from tests.conformance.v010.talk import begin

NORMAL, BUSY, TRANSPORT_BUSY, NOT_ATTACHED, UNKNOWN_IDS = range(5)
SYNC = c.ExecutionSync()


# --- attaching ----------------------------------------------------------------------------------


def test_a_new_session_begins_at_command_zero(connect010: Connect010) -> None:
    peer = connect010().open()
    peer.send(k.SessionAttach(b"s1"))
    peer.expect(k.SessionAttached, name=b"s1")
    peer.expect(k.SessionCommandPoint, command_id=0, command_offset=0)
    peer.close()


def test_attaching_again_on_the_same_channel_changes_nothing(peer010: Peer010) -> None:
    peer010.send(SYNC, sync=True)
    peer010.expect_completed(0)
    peer010.send(k.SessionAttach(b"s"))
    peer010.expect(k.SessionAttached, name=b"s")
    peer010.send(SYNC, sync=True)
    peer010.expect_completed(1)
    peer010.close()


def test_a_channel_has_one_session(peer010: Peer010) -> None:
    peer010.send(k.SessionAttach(b"other"))
    peer010.expect(k.SessionDetached, name=b"other", code=TRANSPORT_BUSY)
    peer010.send(SYNC, sync=True)
    peer010.expect_completed(0)
    peer010.close()


def test_a_session_is_on_one_channel(connect010: Connect010) -> None:
    first, second = connect010().open().attach(), connect010().open()
    second.send(k.SessionAttach(b"s"))
    second.expect(k.SessionDetached, name=b"s", code=BUSY)
    first.close()
    second.attach("s")
    second.close()


def test_with_force_a_session_is_taken_from_where_it_was(connect010: Connect010) -> None:
    name = unique("taken")
    first, second = connect010().open().attach(name, timeout=60), connect010().open()
    first.send(SYNC, sync=True)
    first.expect_completed(0)
    second.send(k.SessionAttach(name.encode(), force=True))
    second.expect(k.SessionAttached, name=name.encode())
    first.expect(k.SessionDetached, name=name.encode(), code=BUSY)
    second.expect(k.SessionCommandPoint)
    second.expect_completed(0)
    second.send(k.SessionCommandPoint(1, 0), SYNC, sync=True)
    second.expect_completed(1)
    first.send(SYNC)
    first.close()
    second.close()


def test_names_are_each_channels_own(connect010: Connect010) -> None:
    peer = connect010().open().attach("a", 1).attach("b", 2)
    peer.send(SYNC, channel=2, sync=True)
    peer.expect_completed(0, channel=2)
    peer.quiet(1)
    peer.close()


def test_a_detached_channel_may_be_used_again(peer010: Peer010) -> None:
    peer010.send(k.SessionDetach(b"s"))
    peer010.expect(k.SessionDetached, name=b"s", code=NORMAL)
    peer010.attach("t")
    peer010.close()


def test_a_session_without_a_timeout_ends_with_its_channel(peer010: Peer010) -> None:
    peer010.send(SYNC, sync=True)
    peer010.expect_completed(0)
    peer010.send(k.SessionDetach(b"s"))
    peer010.expect(k.SessionDetached)
    peer010.attach("s")
    peer010.send(k.SessionFlush(expected=True))
    peer010.expect(k.SessionExpected, commands=((0, 0),))
    peer010.close()


def test_detaching_a_session_that_is_elsewhere_is_refused(peer010: Peer010) -> None:
    peer010.send(k.SessionDetach(b"other"))
    peer010.expect(k.SessionDetached, name=b"other", code=NOT_ATTACHED)
    peer010.close()


def test_a_command_without_a_session_is_refused_once(connect010: Connect010) -> None:
    peer = connect010().open()
    peer.send(SYNC, SYNC)
    peer.expect(k.SessionDetached, code=NOT_ATTACHED)
    peer.attach()
    peer.close()


# --- completing ---------------------------------------------------------------------------------


def test_a_synchronous_command_is_told_complete(peer010: Peer010) -> None:
    peer010.send(SYNC, sync=True)
    peer010.expect(k.SessionCompleted, commands=((0, 0),))
    peer010.close()


def test_completions_are_told_together(peer010: Peer010) -> None:
    peer010.send(SYNC, SYNC, SYNC, sync=True)
    peer010.expect_completed(2)
    peer010.close()


def test_a_known_completion_is_not_reported_again(peer010: Peer010) -> None:
    peer010.send(SYNC, SYNC, sync=True)
    peer010.expect_completed(1)
    peer010.send(k.SessionKnownCompleted(((0, 1),)), SYNC)
    peer010.expect(k.SessionCompleted, commands=((2, 2),))
    peer010.send(k.SessionKnownCompleted(((1, 2),)))
    peer010.send(k.SessionFlush(completed=True))
    peer010.expect(k.SessionCompleted, commands=())
    peer010.close()


def test_a_completion_that_was_never_sent_cannot_be_known(peer010: Peer010) -> None:
    peer010.send(k.SessionKnownCompleted(((0, 5),)), SYNC, sync=True)
    peer010.expect(k.SessionCompleted, commands=((0, 0),))
    peer010.close()


def test_a_flush_says_what_is_expected_confirmed_and_completed(peer010: Peer010) -> None:
    peer010.send(SYNC, SYNC)
    peer010.expect_completed(1)
    peer010.send(k.SessionFlush(expected=True, confirmed=True, completed=True))
    peer010.expect(k.SessionExpected, commands=((2, 2),))
    peer010.expect(k.SessionConfirmed, commands=((0, 1),))
    peer010.expect(k.SessionCompleted, commands=((0, 1),))
    peer010.close()


def test_numbers_wrap_around(connect010: Connect010) -> None:
    peer = connect010().open()
    peer.send(k.SessionAttach(b"w"))
    peer.expect(k.SessionAttached)
    peer.expect(k.SessionCommandPoint)
    peer.send(k.SessionCommandPoint(2**32 - 2, 0), SYNC, SYNC, SYNC)
    completed = peer.expect(k.SessionCompleted)
    assert completed.commands == ((2**32 - 2, 0),)
    peer.close()


def test_a_gap_counts_as_complete(peer010: Peer010) -> None:
    peer010.send(k.SessionGap(((0, 4),)), SYNC, sync=True)
    peer010.expect_completed(5)
    peer010.close()


def test_a_gap_after_what_is_missing_ends_the_session(peer010: Peer010) -> None:
    peer010.send(k.SessionGap(((3, 4),)))
    peer010.expect_exception(531, "commands before 3 are missing")
    peer010.close()


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("octets", "code", "text", "where"),
    [
        (b"\x63\x01\1\0\0\0", 503, "command-invalid: unknown class 99", (99, 1)),
        (b"\x08\x63\1\0\0\0", 503, "unknown command 99 in class queue", (8, 99)),
        (b"\x08\x01\1\0\1\0\xffx", 531, "illegal-argument: queue.declare: field 'queue'", (8, 1)),
        (b"\x04\x01\1\0\2\0\7", 531, "there is no mode 7", (4, 1)),
        (b"\x09\x04\1\0\0\0", 503, "file.consume-ok is for servers", (9, 4)),
    ],
)
def test_a_command_that_fails_ends_its_session_and_nothing_else(
    connect010: Connect010, octets: bytes, code: int, text: str, where: tuple[int, int]
) -> None:
    peer = connect010().open().attach("a", 1).attach("b", 2)
    peer.send(SYNC)
    peer.expect_completed(0)
    peer.send_bytes(frame(COMMAND, octets, 1))
    exception = peer.expect_exception(code, text, command_id=1)
    assert (exception.class_code, exception.command_code) == where
    peer.send(SYNC, channel=2, sync=True)
    peer.expect_completed(0, channel=2)
    peer.attach("a", 1)
    peer.close()


def test_frames_sent_before_the_peer_knows_of_the_end_are_passed_over(
    connect010: Connect010,
) -> None:
    peer = connect010().open().attach()
    bad = frame(COMMAND, b"\x08\x63\1\0\0\0", 1)
    peer.send_bytes(bad, bad, bad)
    peer.send(SYNC, k.SessionFlush(expected=True))
    peer.expect_exception(503, "unknown command 99")
    peer.attach("again")
    peer.close()


def test_content_where_none_belongs_is_refused(peer010: Peer010) -> None:
    peer010.send_bytes(frame(COMMAND, AMQP_0_10.encode(SYNC), 1, 0x0B), frame(3, b"x", 1, 0x07))
    peer010.expect_exception(531, "execution.sync has no content")
    peer010.close()


def test_an_exception_of_the_peer_ends_the_session(peer010: Peer010) -> None:
    peer010.send(c.ExecutionException(404, description="no such delivery"))
    detach = peer010.expect(k.SessionDetach)
    peer010.send(k.SessionDetached(detach.name, NORMAL))
    peer010.attach("t")
    peer010.close()


@pytest.mark.parametrize(
    ("control", "code", "text"),
    [
        (k.SessionCompleted(((0, 3),)), 542, "commands 0 to 3 were not sent"),
        (k.SessionAttached(b"s"), 531, "session.attached without session.attach"),
        (k.SessionCommandPoint(0, 17), 540, "cannot go on in the middle"),
    ],
)
def test_a_control_that_makes_no_sense_ends_the_session(
    peer010: Peer010, control: Any, code: int, text: str
) -> None:
    peer010.send(control)
    peer010.expect_exception(code, text)
    peer010.close()


def test_commands_that_are_lost_end_the_session(peer010: Peer010) -> None:
    peer010.send(SYNC)
    peer010.expect_completed(0)
    peer010.send(k.SessionCommandPoint(7, 0))
    peer010.expect(k.SessionDetached, code=UNKNOWN_IDS)
    peer010.attach("t")
    peer010.close()


# --- coming back --------------------------------------------------------------------------------


def test_the_timeout_that_is_granted_is_not_longer_than_what_was_asked(
    connect010: Connect010,
) -> None:
    # Its name is its own, and it is not kept: the next one of that name would go on with it.
    peer = connect010().open().attach(unique("asked"))
    for asked, granted in (
        *((0, 0), (5, 5), (86_400, 86_400), (86_401, 86_400), (None, 86_400)),
        (0, 0),
    ):
        peer.send(k.SessionRequestTimeout(asked))
        peer.expect(k.SessionTimeout, timeout=granted)
    peer.close()


def test_a_session_with_a_timeout_goes_on_where_it_was(connect010: Connect010) -> None:
    name = unique("kept")
    first = connect010().open().attach(name, timeout=60)
    first.send(SYNC, SYNC, sync=True)
    first.expect_completed(1)
    first.send(k.SessionDetach(name.encode()))
    first.expect(k.SessionDetached, code=NORMAL)
    first.close()
    second = connect010().open()
    second.send(k.SessionAttach(name.encode()), channel=9)
    second.expect(k.SessionAttached, 9)
    second.expect(k.SessionCommandPoint, 9, command_id=0)
    second.send(k.SessionFlush(expected=True), channel=9)
    second.expect_later(k.SessionExpected, 9, commands=((2, 2),))
    # The peer does not know whether its second command arrived, and sends it again.
    second.send(k.SessionCommandPoint(1, 0), SYNC, SYNC, channel=9)
    second.expect_completed(2, 9)
    second.close()


def test_a_session_outlives_a_connection_that_is_lost(connect010: Connect010) -> None:
    name = unique("kept")
    first = connect010().open().attach(name, timeout=60)
    first.send(SYNC, sync=True)
    first.expect_completed(0)
    first.wire.drop()
    first.ended = True
    second = connect010().open()
    second.send(k.SessionAttach(name.encode(), force=True))
    second.expect(k.SessionAttached)
    second.expect(k.SessionCommandPoint)
    second.send(k.SessionFlush(expected=True))
    second.expect_later(k.SessionExpected, commands=((1, 1),))
    second.close()


def test_a_session_ends_when_its_timeout_is_over(memory: MemorySite, memory010: Connect010) -> None:
    name = unique("kept")
    peer = memory010().open().attach(name, timeout=5)
    peer.send(SYNC, sync=True)
    peer.expect_completed(0)
    peer.send(k.SessionDetach(name.encode()))
    peer.expect(k.SessionDetached)
    memory.pass_time(4.0)
    assert len(memory.registry.named_sessions) == 1
    memory.pass_time(2.0)
    assert not memory.registry.named_sessions
    peer.attach(name)
    peer.close()


def test_results_that_were_not_confirmed_are_sent_again(connect010: Connect010) -> None:
    name = unique("kept")
    first = connect010().open().attach(name, timeout=60)
    first.send(c.ExchangeQuery("amq.direct"), c.ExchangeQuery("amq.topic"))
    for number in (0, 1):
        first.expect_later(c.ExecutionResult, command_id=number)
    first.expect_completed(1)
    first.send(k.SessionCompleted(((0, 0),)))
    first.send(k.SessionDetach(name.encode()))
    first.expect(k.SessionDetached)
    first.close()
    second = connect010().open()
    second.send(k.SessionAttach(name.encode()))
    second.expect(k.SessionAttached)
    second.expect(k.SessionFlush, expected=True, confirmed=True, completed=True)
    second.send(k.SessionExpected(((1, 1),)), k.SessionCommandPoint(2, 0))
    second.expect(k.SessionCommandPoint, command_id=1)
    second.expect(c.ExecutionResult, command_id=1)
    second.expect_completed(1)
    second.send(k.SessionCompleted(((0, 1),), timely_reply=True))
    second.expect(k.SessionKnownCompleted, commands=((0, 1),))
    second.close()


# --- the table ----------------------------------------------------------------------------------

VALUES: dict[str, Any] = {
    "session.attach": k.SessionAttach(b"s"),
    "session.attached": k.SessionAttached(b"s"),
    "session.detach": k.SessionDetach(b"s"),
    "session.detached": k.SessionDetached(b"s", 0),
    "session.request-timeout": k.SessionRequestTimeout(0),
    "session.timeout": k.SessionTimeout(0),
    "session.command-point": k.SessionCommandPoint(0, 0),
    "session.expected": k.SessionExpected(((0, 0),)),
    "session.confirmed": k.SessionConfirmed(),
    "session.completed": k.SessionCompleted(),
    "session.known-completed": k.SessionKnownCompleted(),
    "session.flush": k.SessionFlush(expected=True),
    "session.gap": k.SessionGap(),
}


REACHED = (ChannelState.DETACHED, ChannelState.ATTACHED, ChannelState.ENDING)


def test_the_values_cover_every_control_of_sessions() -> None:
    assert set(VALUES) == {name for name in AMQP_0_10.controls if name.startswith("session.")}


@pytest.mark.parametrize("state", REACHED, ids=lambda state: state.value)
@pytest.mark.parametrize("name", VALUES)
def test_every_control_in_every_state_of_a_channel_does_what_the_table_says(
    memory: MemorySite, memory010: Connect010, state: ChannelState, name: str
) -> None:
    peer = memory010().open()
    if state is not ChannelState.DETACHED:
        peer.attach()
    if state is ChannelState.ENDING:
        peer.send_bytes(frame(COMMAND, b"\x08\x63\1\0\0\0", 1))
        peer.expect(c.ExecutionException)
        peer.expect(k.SessionDetach)
    peer.send(VALUES[name])
    answers = []
    while (found := peer.maybe()) is not None:
        answers.append(found.value)
    assert not peer.ended
    follows = CHANNEL[state][EVENTS[name]]
    if follows is IGNORED:
        assert answers == []
        return
    if isinstance(follows, Fault) and state is ChannelState.DETACHED:
        detached = [a for a in answers if isinstance(a, k.SessionDetached)]
        assert [a.code for a in detached] == [NOT_ATTACHED]
        assert len(answers) == len(detached)
        return
    assert memory.registry.connections
    sessions = [s for link in memory.registry.connections for s in link.channels.values()]
    ended = any(isinstance(a, c.ExecutionException) for a in answers)
    assert bool(sessions) == (follows is ChannelState.ATTACHED and not ended)


def test_a_control_may_come_in_several_frames(connect010: Connect010) -> None:
    peer = connect010().open()
    octets = AMQP_0_10.encode(k.SessionAttach(b"pieces"))
    peer.send_bytes(
        frame(CONTROL, octets[:3], 1, 0x0E),
        frame(CONTROL, octets[3:5], 1, 0x0C),
        frame(CONTROL, octets[5:], 1, 0x0D),
    )
    peer.expect(k.SessionAttached, name=b"pieces")
    peer.expect(k.SessionCommandPoint)
    peer.close()


def test_much_that_a_session_leaves_behind_goes_back_in_its_order(connect010: Connect010) -> None:
    # More than goes back at once: the rest follows in later turns.
    queue, count = unique("left-behind"), 300
    (first,), (second,) = begin(connect010()), begin(connect010())
    first.do(c.QueueDeclare(queue))
    for number in range(count):
        first.publish("", b"%d" % number, routing_key=queue)
    for number in range(80):
        first.subscribe(queue, f"t{number}", credit=3)
    first.sync()
    assert len(first.deliveries()) == 240
    second.subscribe(queue)
    second.sync()
    assert len(second.bodies()) == count - 240
    first.leave()
    got: list[Any] = []
    while len(got) < 240:
        second.sync()
        got += second.deliveries()
    assert [int(each.body) for each in got] == list(range(240))
    assert all(each.header[0].redelivered for each in got)
    second.do(c.QueueDelete(queue))
    second.leave()
