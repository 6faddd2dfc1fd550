"""Acknowledging, rejecting and recovering; transactions and confirms."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.raw import Peer, publish_octets

Connect = Callable[[], Peer]


def unknown(tag: int) -> str:
    return f"PRECONDITION_FAILED - unknown delivery tag {tag}"


def filled(peer: Peer, count: int = 5) -> None:
    """Queue q with messages 0, 1, 2, ..."""
    peer.queue("q")
    for number in range(count):
        peer.publish("", "q", b"%d" % number)


def take(peer: Peer, count: int, channel: int = 1) -> list[int]:
    """Get that many without acknowledging them; their tags."""
    return [peer.get("q", no_ack=False, channel=channel).method.delivery_tag for _ in range(count)]


def rest(peer: Peer) -> list[tuple[bytes, bool]]:
    """What is in q, and whether it was delivered before."""
    found = [peer.get("q") for _ in range(peer.count("q"))]
    return [(content.body, content.method.redelivered) for content in found]


# --- ack ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ack", "left"),
    [
        (m.BasicAck(2), [b"0", b"2", b"3"]),
        (m.BasicAck(2, multiple=True), [b"2", b"3"]),
        (m.BasicAck(4, multiple=True), []),
        (m.BasicAck(0, multiple=True), []),
    ],
)
def test_an_ack_settles_one_delivery_or_all_up_to_it(
    peer: Peer, ack: m.BasicAck, left: list[bytes]
) -> None:
    filled(peer, 4)
    take(peer, 4)
    peer.send(ack)
    peer.ask(m.BasicRecover(requeue=True))
    assert rest(peer) == [(text, True) for text in left]


@pytest.mark.rule("0-9-1r#105", "0-9-1r#106")
@pytest.mark.parametrize("multiple", [True, False])
def test_a_delivery_is_acknowledged_once(peer: Peer, multiple: bool) -> None:
    filled(peer)
    take(peer, 2)
    peer.send(m.BasicAck(1))
    peer.expect_silence()
    peer.send(m.BasicAck(1, multiple))
    peer.expect_channel_close(406, unknown(1), "basic.ack")


@pytest.mark.rule("0-9-1r#106", "0-9-1r#114")
@pytest.mark.parametrize("tag", [3, 99, 2**63, 2**64 - 1])
@pytest.mark.parametrize("kind", [m.BasicAck, m.BasicNack, m.BasicReject])
def test_a_tag_that_was_never_delivered_is_refused(
    peer: Peer, tag: int, kind: type[m.Method]
) -> None:
    filled(peer)
    take(peer, 2)
    peer.send(kind(tag))
    peer.expect_channel_close(406, unknown(tag), kind.NAME)
    peer.ask(m.ChannelOpen())
    assert len(rest(peer)) == 5


# --- nack and reject ------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1r#113", "0-9-1r#114")
@pytest.mark.parametrize("first", [m.BasicNack(1), m.BasicReject(1), m.BasicAck(1)])
@pytest.mark.parametrize("second", [m.BasicNack(1), m.BasicReject(1), m.BasicNack(1, True)])
def test_a_delivery_is_settled_once(peer: Peer, first: m.Method, second: m.Method) -> None:
    filled(peer)
    take(peer, 2)
    peer.send(first)
    peer.expect_silence()
    peer.send(second)
    peer.expect_channel_close(406, unknown(1), second.NAME)


@pytest.mark.parametrize("kind", [m.BasicNack, m.BasicReject])
def test_messages_refused_without_requeue_are_gone(peer: Peer, kind: type[m.Method]) -> None:
    filled(peer, 2)
    take(peer, 1)
    peer.send(kind(delivery_tag=1, requeue=False))
    assert rest(peer) == [(b"1", False)]


@pytest.mark.parametrize("order", [[1, 2, 3], [3, 2, 1], [2, 3, 1]])
def test_requeued_messages_return_to_their_place(peer: Peer, order: list[int]) -> None:
    filled(peer)
    take(peer, 3)
    for tag in order:
        peer.send(m.BasicReject(tag, requeue=True))
    old = [(b"0", True), (b"1", True), (b"2", True)]
    assert rest(peer) == [*old, (b"3", False), (b"4", False)]


def test_a_nack_may_give_several_back(peer: Peer) -> None:
    filled(peer)
    take(peer, 4)
    peer.send(m.BasicAck(2))
    peer.send(m.BasicNack(3, multiple=True, requeue=True))
    assert rest(peer) == [(b"0", True), (b"2", True), (b"4", False)]


@pytest.mark.rule("0-9-1r#110", "0-9-1r#111")
@pytest.mark.parametrize("kind", [m.BasicRecover, m.BasicRecoverAsync])
def test_recovered_messages_come_again_marked_as_redelivered(
    peer: Peer, kind: type[m.Method]
) -> None:
    filled(peer, 3)
    peer.consume("q")
    for number in range(3):
        peer.expect_delivery(b"%d" % number, delivery_tag=number + 1, redelivered=False)
    peer.send(m.BasicAck(2))
    peer.send(kind(requeue=True))
    found = [peer.expect_delivery_or_ok() for _ in range(3 if kind is m.BasicRecover else 2)]
    deliveries = [item for item in found if item is not None]
    assert [content.body for content in deliveries] == [b"0", b"2"]
    assert all(content.method.redelivered for content in deliveries)
    assert [content.method.delivery_tag for content in deliveries] == [4, 5]
    assert found.count(None) == (1 if kind is m.BasicRecover else 0)


# --- transactions ---------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1r#116")
def test_publishes_take_effect_together_at_commit(connect: Connect) -> None:
    writer, reader = connect().open(), connect().open()
    reader.queue("q")
    reader.consume("q", no_ack=True)
    writer.ask(m.TxSelect())
    for number in range(50):
        writer.publish("", "q", b"%d" % number)
    writer.expect_silence()
    reader.expect_silence()
    writer.ask(m.TxCommit())
    for number in range(50):
        reader.expect_delivery(b"%d" % number)
    for number in range(50):
        writer.publish("", "q", b"%d" % number)
    writer.ask(m.TxRollback())
    writer.ask(m.TxCommit())
    reader.expect_silence()


@pytest.mark.rule("0-9-1r#116")
def test_acknowledgements_take_effect_at_commit(peer: Peer) -> None:
    filled(peer)
    peer.ask(m.ChannelOpen(), 2)
    peer.ask(m.TxSelect(), 2)
    take(peer, 3, channel=2)
    peer.send(m.BasicAck(2, multiple=True), channel=2)
    peer.ask(m.TxCommit(), 2)
    peer.send(m.BasicNack(3, requeue=True), channel=2)
    peer.expect_silence()
    assert peer.count("q") == 2
    peer.ask(m.TxCommit(), 2)
    assert rest(peer) == [(b"2", True), (b"3", False), (b"4", False)]


@pytest.mark.rule("0-9-1r#116")
def test_a_rollback_makes_acknowledged_deliveries_outstanding_again(peer: Peer) -> None:
    filled(peer, 2)
    peer.ask(m.TxSelect())
    take(peer, 2)
    peer.send(m.BasicAck(2, multiple=True))
    peer.ask(m.TxRollback())
    assert peer.count("q") == 0
    peer.send(m.BasicAck(1))
    peer.ask(m.TxCommit())
    peer.ask(m.ChannelClose(200))
    peer.ask(m.ChannelOpen())
    assert rest(peer) == [(b"1", True)]


@pytest.mark.rule("0-9-1r#116")
def test_a_transaction_dies_with_its_channel(peer: Peer) -> None:
    filled(peer, 1)
    peer.ask(m.TxSelect())
    take(peer, 1)
    peer.send(m.BasicAck(1))
    peer.publish("", "q", b"never")
    peer.ask(m.ChannelClose(200))
    peer.ask(m.ChannelOpen())
    assert rest(peer) == [(b"0", True)]


@pytest.mark.rule("0-9-1r#107")
@pytest.mark.parametrize("kind", [m.BasicAck, m.BasicNack, m.BasicReject])
def test_in_a_transaction_tags_are_checked_at_once(peer: Peer, kind: type[m.Method]) -> None:
    filled(peer)
    peer.ask(m.TxSelect())
    take(peer, 1)
    peer.send(m.BasicAck(1))
    peer.expect_silence()
    # Settled twice, though nothing is committed yet.
    peer.send(kind(1))
    peer.expect_channel_close(406, unknown(1), kind.NAME)


@pytest.mark.parametrize("way", ["exchange", "expiration"])
def test_in_a_transaction_publishes_are_checked_at_once(peer: Peer, way: str) -> None:
    peer.ask(m.TxSelect())
    if way == "exchange":
        peer.publish("none", "k", b"x")
        text = "NOT_FOUND - no exchange 'none' in vhost '/'"
        peer.expect_channel_close(404, text, "basic.publish")
    else:
        peer.publish("", "q", b"x", b"\1\0\1x")
        text = "PRECONDITION_FAILED - invalid expiration 'x': no_integer"
        peer.expect_channel_close(406, text, "basic.publish")


def test_returns_come_before_commit_ok(peer: Peer) -> None:
    peer.ask(m.TxSelect())
    peer.publish("", "nowhere", b"x", mandatory=True)
    peer.expect_silence()
    peer.send(m.TxCommit())
    assert peer.expect_content(m.BasicReturn, reply_code=312).body == b"x"
    peer.expect(m.TxCommitOk)


@pytest.mark.rule("0-9-1r#120", "0-9-1r#121", "0-9-1r#122")
@pytest.mark.parametrize("kind", [m.TxCommit, m.TxRollback])
def test_a_channel_needs_select_before_commit_and_rollback(
    peer: Peer, kind: type[m.Method]
) -> None:
    peer.send(kind())
    text = "PRECONDITION_FAILED - channel is not transactional"
    peer.expect_channel_close(406, text, kind.NAME)
    peer.ask(m.ChannelOpen())
    for _ in range(2):
        peer.ask(m.TxSelect())
    peer.ask(kind())


# --- confirms -------------------------------------------------------------------------------------


def confirmed(peer: Peer, count: int) -> None:
    """Read acks until that many publishes are confirmed."""
    done = 0
    while done < count:
        ack = peer.expect(m.BasicAck)
        assert ack.delivery_tag > done, "a confirm for what was confirmed before"
        assert ack.multiple or ack.delivery_tag == done + 1, "a confirm was left out"
        done = ack.delivery_tag
    assert done == count


@pytest.mark.rule("0-9-1r#123")
@pytest.mark.parametrize("together", [True, False])
def test_every_publish_after_select_is_confirmed(peer: Peer, together: bool) -> None:
    peer.queue("q")
    peer.publish("", "q", b"before")
    peer.expect_silence()
    peer.ask(m.ConfirmSelect())
    octets = [publish_octets("", key, b"x") for key in ("q", "nowhere") * 100]
    for piece in (b"".join(octets),) if together else octets:
        peer.send_bytes(piece)
    confirmed(peer, 200)
    peer.expect_silence()
    assert peer.count("q") == 101


@pytest.mark.rule("0-9-1r#123")
def test_selecting_again_does_not_begin_to_count_anew(peer: Peer) -> None:
    peer.ask(m.ConfirmSelect())
    peer.publish("", "nowhere", b"x")
    peer.expect(m.BasicAck, delivery_tag=1)
    peer.ask(m.ConfirmSelect())
    peer.publish("", "nowhere", b"x")
    peer.expect(m.BasicAck, delivery_tag=2)


@pytest.mark.rule("0-9-1r#124")
def test_a_confirm_comes_when_every_queue_has_the_message(connect: Connect) -> None:
    writer, other = connect().open(), connect().open()
    for name in ("a", "b", "c"):
        other.queue(name, durable=True)
        other.ask(m.QueueBind(name, "amq.fanout"))
    writer.ask(m.ConfirmSelect())
    for tag in range(1, 4):
        writer.publish("amq.fanout", "", b"x")
        writer.expect(m.BasicAck, delivery_tag=tag)
        assert [other.count(name) for name in ("a", "b", "c")] == [tag, tag, tag]


@pytest.mark.rule("0-9-1r#125")
def test_an_unroutable_mandatory_message_is_returned_and_then_confirmed(peer: Peer) -> None:
    peer.ask(m.ConfirmSelect())
    peer.queue("q")
    octets = [
        publish_octets("", key, b"%d" % number, mandatory=True)
        for number, key in enumerate(("q", "nowhere", "nowhere", "q"), start=1)
    ]
    peer.send_bytes(b"".join(octets))
    done = 0
    returned: list[int] = []
    while done < 4:
        found = peer.expect_return_or_ack()
        if isinstance(found, int):
            assert all(number in returned for number in (2, 3) if number <= found)
            done = found
        else:
            returned.append(int(found.body))
    assert returned == [2, 3]


def test_a_publish_that_closes_the_channel_is_not_confirmed(peer: Peer) -> None:
    peer.ask(m.ConfirmSelect())
    peer.send_bytes(publish_octets("none", "k", b"x"), publish_octets("", "q", b"x"))
    peer.expect_channel_close(404, "NOT_FOUND - no exchange 'none' in vhost '/'", "basic.publish")
