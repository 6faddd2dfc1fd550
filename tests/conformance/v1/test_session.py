"""Sessions: begin, windows, end."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.limits import (
    BLOCKED_INPUT_BYTES,
    FINISH_MS,
    INCOMING_WINDOW,
    LINK_CREDIT,
)
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import encode_frame
from harebell.wire.v1.sections import data_section
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1
from tests.conformance.v1.test_consuming import expect_bodies, fill

LAST = (1 << 32) - 1


@pytest.mark.rule("1.0#045", "1.0#061")
def test_begin_is_answered_on_the_same_channel(connect1: Connect1) -> None:
    peer = connect1().open()
    for channel in (3, 0, 100):
        peer.begin(channel)
        assert peer.session.remote_channel == channel
        assert peer.session.incoming_window == INCOMING_WINDOW
        assert peer.session.handle_max == 255


@pytest.mark.rule("1.0#046")
def test_a_second_begin_on_a_channel_is_refused(peer1: Peer1) -> None:
    peer1.send(c.Begin(None, 0, 1, 1))
    peer1.expect_close("amqp:not-allowed", "begin on channel 0, which has a session")


def test_begin_with_a_remote_channel_is_refused(connect1: Connect1) -> None:
    peer = connect1().open()
    peer.send(c.Begin(4, 0, 1, 1))
    peer.expect_close("amqp:not-allowed", "remote-channel")


@pytest.mark.rule("1.0#040")
def test_a_channel_above_the_limit_is_refused(connect1: Connect1) -> None:
    peer = connect1().open(channel_max=3)
    peer.begin(3)
    peer.send(c.Begin(None, 0, 1, 1), channel=4)
    peer.expect_error(c.Close, "amqp:connection:framing-error", "channel number (4) exceeds")
    peer.expect_end()


@pytest.mark.rule("1.0#050")
@pytest.mark.parametrize(
    "value", [c.End(), c.Flow(None, 1, 0, 1), c.Disposition(True, 0), c.Detach(0), c.Transfer(0)]
)
def test_a_frame_on_a_channel_without_a_session_is_refused(
    connect1: Connect1, value: c.End
) -> None:
    peer = connect1().open()
    peer.send(value, channel=2)
    peer.expect_close("amqp:illegal-state", f"{value.NAME} on channel 2, which has no session")


@pytest.mark.rule("1.0#047", "1.0#048")
def test_end_is_answered_and_the_channel_is_free(queue: str, peer1: Peer1) -> None:
    peer1.attach_receiver(f"/queues/{queue}", credit=1)
    peer1.send(c.End())
    peer1.expect(c.End, error=None)
    peer1.begin()
    peer1.quiet()


@pytest.mark.rule("1.0#047")
def test_each_transfer_comes_to_the_session_that_its_channel_has_now(
    queue: str, peer1: Peer1
) -> None:
    peer1.begin(1)
    for channel in (0, 1):
        peer1.attach_sender(f"/queues/{queue}", channel=channel)
    for channel, body in ((0, b"a"), (1, b"b"), (1, b"c"), (0, b"d")):
        peer1.transfer(0, body, channel=channel, settled=True)
    peer1.send(c.End())
    peer1.expect(c.End, error=None)
    # The last transfer came in it, and its channel gets another one.
    peer1.begin()
    peer1.attach_sender(f"/queues/{queue}")
    peer1.transfer(0, b"e", settled=True)
    peer1.transfer(0, b"f", channel=1, settled=True)
    peer1.attach_receiver(f"/queues/{queue}", handle=1, credit=6)
    for body in (b"a", b"b", b"c", b"d", b"e", b"f"):
        assert peer1.expect_transfer().payload.endswith(data_section(body))


@pytest.mark.rule("1.0#049", "1.0#066")
@pytest.mark.parametrize("value", [c.Flow(None, 1, 0, 1, handle=9), c.Detach(9), c.Transfer(9)])
def test_a_handle_without_a_link_ends_the_session(peer1: Peer1, value: c.Detach) -> None:
    peer1.send(value)
    peer1.expect_error(c.End, "amqp:session:unattached-handle", f"{value.NAME} for the handle 9")
    # What crosses the end is dropped.
    peer1.send(c.Flow(None, 1, 0, 1), c.Attach("l", 0, False), c.End())
    peer1.begin()


# --- windows ------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#051", "1.0#059", "1.0#094", "1.0#095")
@pytest.mark.parametrize("first", [0, 7, LAST])
def test_transfers_are_counted_from_next_outgoing_id(
    queue: str, connect1: Connect1, first: int
) -> None:
    peer = connect1().open()
    peer.send(c.Begin(None, first, 10, 10))
    peer.expect(c.Begin)
    peer.attach_sender(f"/queues/{queue}")
    for _ in range(3):
        peer.transfer(0, b"", settled=True)
    peer.send(c.Flow(0, 10, (first + 3) & LAST, 10, echo=True))
    flow = peer.expect(c.Flow, next_incoming_id=(first + 3) & LAST, handle=None)
    assert (flow.delivery_count, flow.link_credit, flow.available) == (None, None, None)


@pytest.mark.rule("1.0#057")
def test_the_window_is_widened_at_half(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    last = c.Transfer(0, 0, b"t", 0, True, more=True).encoded()
    rest = c.Transfer(0, more=True).encoded()
    peer1.send_bytes(encode_frame(last))
    peer1.send_bytes(*[encode_frame(rest + b"x")] * (INCOMING_WINDOW // 2))
    peer1.expect(c.Flow, incoming_window=INCOMING_WINDOW, handle=None)
    peer1.send_bytes(encode_frame(c.Transfer(0, aborted=True).encoded()))
    peer1.quiet()


@pytest.mark.rule("1.0#056")
def test_a_flow_ahead_of_what_was_sent(peer1: Peer1) -> None:
    peer1.send(c.Flow(1, 10, 0, 10))
    peer1.expect_error(c.End, "amqp:session:window-violation", "next-incoming-id (1) is ahead")
    peer1.send(c.End())


@pytest.mark.rule("1.0#053", "1.0#054", "1.0#058")
def test_deliveries_wait_for_the_window_and_nothing_else_does(
    queue: str, connect1: Connect1
) -> None:
    peer = connect1().open()
    peer.begin(window=2)
    peer.attach_sender(f"/queues/{queue}", 0)
    for body in (b"0", b"1", b"2", b"3"):
        peer.transfer(0, body)
        peer.expect(c.Disposition)
    peer.attach_receiver(f"/queues/{queue}", 1)
    peer.send(c.Flow(0, 2, 4, 100, 1, 0, 100))
    assert peer.expect_transfer(delivery_id=0).payload.endswith(data_section(b"0"))
    assert peer.expect_transfer(delivery_id=1).payload.endswith(data_section(b"1"))
    # A disposition passes, in both directions.
    peer.transfer(0, b"4")
    peer.expect(c.Disposition, first=4)
    peer.send(c.Disposition(True, 0, 1, False, c.Accepted()))
    peer.expect(c.Disposition, role=False, first=0, last=1, settled=True)
    # Only one of the two was received when this was sent.
    peer.send(c.Flow(1, 2, 5, 100))
    peer.expect_transfer(delivery_id=2)
    peer.send(c.Flow(3, 0, 5, 100, echo=True))
    peer.expect(c.Flow, next_outgoing_id=3)
    peer.send(c.Flow(3, 9, 5, 100))
    peer.expect_transfer(delivery_id=3)
    peer.expect_transfer(delivery_id=4)


@pytest.mark.rule("1.0#116", "1.0#039")
def test_a_delivery_in_several_frames_waits_for_the_window(queue: str, connect1: Connect1) -> None:
    peer = connect1().open(max_frame_size=512).begin(window=3)
    peer.attach_sender(f"/queues/{queue}", 0)
    body = bytes(range(256)) * 8
    peer.transfer(0, body)
    peer.expect(c.Disposition)
    peer.attach_receiver(f"/queues/{queue}", 1)
    peer.send(c.Flow(0, 3, 1, 100, 1, 0, 1))
    parts = [peer.expect_transfer(delivery_id=0, more=True).payload]
    parts += [peer.expect_transfer(handle=1, more=True).payload for _ in range(2)]
    peer.send(c.Flow(3, 100, 1, 100))
    more = True
    while more:
        found = peer.expect_transfer(handle=1)
        parts.append(found.payload)
        more = found.value.more
    assert b"".join(parts).endswith(body)
    assert max(peer.sizes) <= 512


@pytest.mark.rule("1.0#055")
def test_a_flow_says_where_the_transfers_of_the_peer_go_on(peer1: Peer1) -> None:
    for number in (7, LAST, 3):
        peer1.send(c.Flow(0, 100, number, 100, echo=True))
        peer1.expect(c.Flow, next_incoming_id=number, handle=None)


@pytest.mark.rule("1.0#052")
def test_a_transfer_beyond_the_window_ends_the_session() -> None:
    # The broker widens the window in each turn: only while memory is short it can be used up.
    site = MemorySite(memory_high=1)
    peer = Peer1(site, site.connect()).open()
    site.gauge.add(2)
    peer.send(c.Begin(None, 0, 10, 10))
    peer.expect(c.Begin, incoming_window=0)
    asked = c.Attach("s", 0, False, source=c.Source(), target=c.Target(), initial_delivery_count=0)
    peer.send(asked)
    peer.expect(c.Attach)
    peer.expect(c.Flow, incoming_window=0)
    peer.send(c.Transfer(0, 0, b"t", 0))
    peer.expect_error(c.End, "amqp:session:window-violation", "a transfer beyond")
    peer.send(c.End())
    peer.done()


# --- memory -------------------------------------------------------------------------------------


def test_while_memory_is_short_only_the_window_is_closed(name: str) -> None:
    site = MemorySite(memory_high=1_000_000)
    peer = Peer1(site, site.connect()).open().begin()
    peer.attach_sender(f"/queue/{name}", 0)
    peer.transfer(0, b"before")
    peer.expect(c.Disposition)
    site.gauge.add(2_000_000)
    # It was sent before the peer knew, and is taken.
    peer.transfer(0, b"crossing")
    found = [peer.next().value, peer.next().value]
    assert [type(each) for each in found] == [c.Disposition, c.Flow]
    assert found[1].incoming_window == 0
    # Consuming goes on, as that frees memory.
    peer.attach_receiver(f"/queue/{name}", 1, credit=10)
    peer.expect_transfer(delivery_id=0)
    peer.expect_transfer(delivery_id=1)
    peer.send(c.Disposition(True, 0, 1, True, c.Accepted()))
    site.gauge.take(2_000_000)
    site.pass_time(1)
    peer.expect(c.Flow, incoming_window=INCOMING_WINDOW)
    peer.transfer(0, b"after")
    assert {type(peer.next().value) for _ in range(2)} == {c.Disposition, c.Transfer}
    peer.done()


def _begin_large(site: MemorySite, name: str, size: int, user: str = "guest") -> Peer1:
    """A peer that has sent a message but for its last thousand octets."""
    peer = Peer1(site, site.connect()).open(user=user, password=user, idle_time_out=0).begin()
    peer.attach_sender(f"/queue/{name}")
    part = b"\0\x53\x75\xb0" + size.to_bytes(4) + bytes(size - 1_000)
    peer.transfer_payload(0, part, more=True)
    return peer


def test_a_message_in_parts_may_come_to_its_end_while_memory_is_short(name: str) -> None:
    site = MemorySite(memory_high=100_000)
    peer = _begin_large(site, name, 110_000)
    # First the window is closed, then opened again, as nobody else can end the shortage.
    peer.expect(c.Flow, incoming_window=0)
    site.pass_time(1)
    peer.expect(c.Flow, incoming_window=INCOMING_WINDOW)
    peer.transfer_payload(0, bytes(1_000), delivery_id=0)
    found = [peer.next().value, peer.next().value]
    assert {type(each) for each in found} == {c.Disposition, c.Flow}
    assert site.registry.publishers.finishing is None
    peer.attach_receiver(f"/queue/{name}", 1, credit=1)
    assert len(peer.expect_transfer().payload) > 110_000
    peer.send(c.Disposition(True, 0, None, True, c.Accepted()))
    site.pass_time(1)
    peer.expect(c.Flow, incoming_window=INCOMING_WINDOW)
    peer.done()


def test_messages_that_do_not_come_to_their_end_do_not_block_others_for_ever(name: str) -> None:
    site = MemorySite(memory_high=100_000)
    site.users.add("other", "other", vhosts=("/",))
    small = _begin_large(site, name, 5_000, "other")
    # Some of them came before memory was short, so nothing is blocked of these connections.
    large = [_begin_large(site, name, 30_000) for _ in range(4)]
    publisher = Peer(site, site.connect()).open()
    publisher.queue(f"{name}-other")
    publisher.publish("", f"{name}-other", b"x")
    assert site.gauge.over
    site.pass_time(1)
    assert site.gauge.over
    site.pass_time(FINISH_MS / 1_000)
    for peer in large:
        while not isinstance(value := peer.next().value, c.Detach):
            assert isinstance(value, c.Flow)
        assert value.error is not None
        assert value.error.condition == "amqp:resource-limit-exceeded"
        assert "did not come to their end in 10 s" in str(value.error.description)
        peer.drop()
    site.pass_time(1)
    assert not site.gauge.over
    assert not site.registry.publishers.connections
    assert publisher.count(f"{name}-other") == 1
    # The user who had less goes on.
    assert site.gauge.unread > 0
    small.transfer_payload(0, bytes(1_000), delivery_id=0)
    small.expect(c.Disposition, state=c.Accepted())
    small.done()
    publisher.done()


def test_a_blocked_peer_that_goes_on_sending_is_not_read_until_there_is_memory(name: str) -> None:
    site = MemorySite(memory_high=1_000_000)
    peer = Peer1(site, site.connect()).open()
    # The windows of all these were open when memory ran short.
    for channel in range(10):
        peer.begin(channel)
        peer.attach_sender(f"/queue/{name}", 0, channel)
    connection = peer.wire.connection
    site.gauge.add(2_000_000)
    part = bytes(100_000)
    sent = 0
    while not connection.paused:
        channel = sent // 100 % 10
        first = {} if sent % 100 else {"delivery_id": sent // 1_000, "delivery_tag": b""}
        given = {"delivery_id": None, "delivery_tag": None, "message_format": None} | first
        peer.transfer_payload(0, part, channel=channel, more=True, **given)
        sent += 1
        assert sent < 2 * BLOCKED_INPUT_BYTES // len(part)
    assert sent > BLOCKED_INPUT_BYTES // len(part)
    site.gauge.take(2_000_000)
    peer.drop()
    assert site.gauge.unread == 0


def test_memory_of_a_message_in_parts_is_counted_and_given_back(
    memory: MemorySite, memory1: Connect1, name: str
) -> None:
    peer = memory1().open().begin()
    peer.attach_sender(f"/queue/{name}")
    before = memory.gauge.used
    peer.transfer_payload(0, b"\0\x53\x75\xb0" + (200).to_bytes(4) + bytes(100), more=True)
    assert memory.gauge.unread == 105 + 3
    peer.send(c.End())
    peer.expect(c.End)
    assert (memory.gauge.used, memory.gauge.unread) == (before, 0)
    assert LINK_CREDIT <= INCOMING_WINDOW


# --- numbers before the first one ---------------------------------------------------------------


@pytest.mark.rule("1.0#059")
@pytest.mark.parametrize("back", [1, 2, 3])
def test_numbers_just_before_the_first_are_numbers(queue: str, peer1: Peer1, back: int) -> None:
    # Serials wrap (RFC 1982): these stand for what was before the begin.
    number = 2**32 - back
    peer1.send(c.Flow(number, 2_048, number, 2_048, echo=True))
    peer1.expect(c.Flow, handle=None)
    peer1.send(c.Flow(0, 2_048, 0, 2_048, echo=True))
    peer1.expect(c.Flow, handle=None)
    peer1.send(c.Disposition(True, number, None, True, c.Accepted()))
    fill(peer1, queue, 2)
    peer1.attach_receiver(f"/queues/{queue}", 1)
    peer1.give(1, 9, delivery_count=number)
    expect_bodies(peer1, b"0", b"1")
    # Over the end of the numbers: the first of what was sent, but nothing else.
    peer1.send(c.Disposition(True, number, 0, True, c.Accepted()))
    peer1.send(c.Detach(1, True))
    peer1.expect(c.Detach)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=9)
    expect_bodies(peer1, b"1")


@pytest.mark.rule("1.0#059")
@pytest.mark.parametrize("outcome", [c.Accepted(), c.Rejected()])
def test_deliveries_over_the_end_of_the_numbers_are_settled(
    memory: MemorySite, memory1: Connect1, outcome: Any
) -> None:
    peer1 = memory1().open().begin()
    peer1.attach_sender("/queue/wrapping")
    for _ in range(4):
        peer1.transfer(0, b"m", settled=True)
    connection: Any = peer1.wire.connection  # type: ignore[attr-defined]
    session = connection.channels[0]
    session.next_tag = session.outgoing_id = session.unacked.next = 2**32 - 2
    peer1.attach_receiver("/queue/wrapping", 1)
    peer1.send(c.Flow(2**32 - 2, 2_048, 4, 2_048, 1, 0, 4))
    numbers = [peer1.expect_transfer().value.delivery_id for _ in range(4)]
    assert numbers == [2**32 - 2, 2**32 - 1, 0, 1]
    wrapping = memory.broker.vhosts["/"].queues["wrapping"]
    peer1.send(c.Disposition(True, 2**32 - 1, 0, True, outcome))
    assert wrapping.unacked == 2
    peer1.send(c.Disposition(True, 1, None, True, outcome))
    peer1.send(c.Disposition(True, 2**32 - 2, None, True, outcome))
    assert (wrapping.unacked, wrapping.ready_count()) == (0, 0)


@pytest.mark.rule("1.0#059")
@pytest.mark.parametrize("many", [False, True])
def test_a_publisher_counts_over_the_end_of_the_numbers(
    queue: str, peer1: Peer1, many: bool
) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    numbers = [(2**32 - 2 + at) % 2**32 for at in range(4)]
    frames: list[bytes] = []
    write = peer1.wire.write
    if many:
        peer1.wire.write = frames.append  # type: ignore[method-assign,assignment]
    for number in numbers:
        peer1.transfer(0, b"m", delivery_id=number)
    peer1.wire.write = write  # type: ignore[method-assign]
    if many:
        write(b"".join(frames))
    settled: list[int] = []
    while len(settled) < 4:
        found = peer1.expect(c.Disposition, settled=True, state=c.Accepted())
        last = found.first if found.last is None else found.last
        settled += [(found.first + at) % 2**32 for at in range((last - found.first) % 2**32 + 1)]
    assert settled == numbers
    peer1.quiet()
