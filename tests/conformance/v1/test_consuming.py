"""Links by which the broker sends: credit, drain, outcomes, what a delivery says."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
from harebell.front.common.kept import kept_bytes
from harebell.front.limits import LINK_BYTES, OUTPUT_HIGH_BYTES, OUTPUT_STOP_BYTES
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.methods import (
    BasicGet,
    BasicGetEmpty,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
)
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import encode_frame
from harebell.wire.v1.sections import Sections, data_section, encode_sections, split
from harebell.wire.v1.values import Described, Symbol, UInt, ULong
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Arrived, Peer1

ACCEPTED, RELEASED = c.Accepted(), c.Released()
SETTLED = 1


def fill(peer: Peer1, queue: str, count: int, handle: int = 0) -> None:
    """Publish messages with their numbers as bodies; the link is attached here."""
    peer.attach_sender(f"/queues/{queue}", handle)
    for number in range(count):
        peer.transfer(handle, b"%d" % number, settled=True)
    peer.send(c.Detach(handle, True))
    peer.expect(c.Detach)


def body_of(found: Arrived) -> bytes:
    """The body of a delivery with one data section."""
    body: bytes = split(found.payload)[1]
    return body


def sections_of(found: Arrived) -> Sections:
    """The sections of a delivery before its body."""
    return Sections(split(found.payload)[0])


def expect_bodies(peer: Peer1, *bodies: bytes) -> list[Arrived]:
    """Deliveries with these bodies."""
    found = [peer.expect_transfer() for _ in bodies]
    assert [body_of(each) for each in found] == list(bodies)
    return found


# --- credit -------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#077", "1.0#078")
def test_nothing_is_sent_without_credit(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 5)
    peer1.attach_receiver(f"/queues/{queue}", 1)
    peer1.quiet()
    # Without delivery-count it is the initial one.
    peer1.give(1, 2, delivery_count=None)
    expect_bodies(peer1, b"0", b"1")
    # The same limit again gives nothing.
    peer1.give(1, 2)
    peer1.quiet()
    peer1.give(1, 2, delivery_count=1)
    expect_bodies(peer1, b"2")
    # Less credit than is used up already is none.
    peer1.give(1, 1, delivery_count=0)
    peer1.quiet()


@pytest.mark.rule("1.0#086")
def test_credit_can_be_taken_back(queue: str, peer1: Peer1) -> None:
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=10)
    peer1.give(1, 0, echo=True)
    flow = peer1.expect(c.Flow, handle=1, link_credit=0, delivery_count=0)
    assert flow.available == 0
    fill(peer1, queue, 1)
    peer1.quiet()


@pytest.mark.rule("1.0#083")
def test_available_says_what_waits(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 5)
    peer1.attach_receiver(f"/queues/{queue}", 1)
    peer1.give(1, 2, echo=True)
    expect_bodies(peer1, b"0", b"1")
    peer1.expect(c.Flow, handle=1, available=3, link_credit=0, delivery_count=2)


@pytest.mark.rule("1.0#081", "1.0#085")
def test_drain_sends_what_is_there_and_passes_over_the_rest(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 3)
    peer1.attach_receiver(f"/queues/{queue}", 1)
    peer1.give(1, 10, drain=True)
    expect_bodies(peer1, b"0", b"1", b"2")
    peer1.expect(c.Flow, handle=1, drain=True, link_credit=0, delivery_count=10)
    fill(peer1, queue, 1)
    peer1.quiet()
    peer1.give(1, 1, delivery_count=10, drain=True)
    expect_bodies(peer1, b"0")
    peer1.expect(c.Flow, handle=1, drain=True, link_credit=0, delivery_count=11)
    # Nothing is there at all.
    peer1.give(1, 1, delivery_count=11, drain=True)
    peer1.expect(c.Flow, handle=1, drain=True, link_credit=0, delivery_count=12)


def test_a_drain_sends_all_of_many_messages(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 400)
    peer1.attach_receiver(f"/queues/{queue}", 1, snd_settle_mode=SETTLED)
    peer1.give(1, 1_000, drain=True)
    expect_bodies(peer1, *(b"%d" % number for number in range(400)))
    peer1.expect(c.Flow, handle=1, drain=True, link_credit=0, delivery_count=1_000)


def test_an_inactive_consumer_is_drained_at_once(peer: Peer, peer1: Peer1, name: str) -> None:
    peer.send(QueueDeclare(queue=name, arguments={"x-single-active-consumer": True}))
    peer.expect(QueueDeclareOk)
    for handle in (1, 2):
        peer1.attach_receiver(f"/queues/{name}", handle)
        _expect_active(peer1, handle, handle == 1)
    fill(peer1, name, 2)
    peer1.give(2, 10, drain=True)
    peer1.expect(c.Flow, handle=2, drain=True, link_credit=0, delivery_count=10)
    peer1.give(1, 1)
    expect_bodies(peer1, b"0")
    peer1.send(c.Detach(1, True), c.Flow(None, 999, 0, 999, 2, 10, 5))
    _expect_active(peer1, 2, True)
    peer1.expect(c.Detach)
    expect_bodies(peer1, b"0", b"1")


def test_a_consumer_of_higher_priority_comes_first(queue: str, peer1: Peer1) -> None:
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=10)
    properties = {Symbol("rabbitmq:priority"): 5}
    peer1.attach_receiver(f"/queues/{queue}", 2, credit=2, properties=properties)
    fill(peer1, queue, 0)
    peer1.attach_sender(f"/queues/{queue}", 0)
    for number in range(3):
        peer1.transfer(0, b"x", settled=True)
        peer1.expect_transfer(handle=2 if number < 2 else 1)


# --- settling -----------------------------------------------------------------------------------


def test_what_is_settled_when_it_is_sent_is_gone(queue: str, peer1: Peer1, peer: Peer) -> None:
    fill(peer1, queue, 2)
    answer = peer1.attach_receiver(f"/queues/{queue}", 1, credit=9, snd_settle_mode=SETTLED)
    assert answer.snd_settle_mode == SETTLED
    for found in expect_bodies(peer1, b"0", b"1"):
        assert (found.value.settled, found.value.delivery_tag) == (True, b"")
    peer1.send(c.Detach(1, True))
    peer1.expect(c.Detach)
    peer.send(BasicGet(queue=queue))
    peer.expect(BasicGetEmpty)


@pytest.mark.rule("1.0#100", "1.0#110", "1.0#111", "1.0#140")
@pytest.mark.parametrize("last", [4, (1 << 31) - 1])
def test_a_disposition_settles_a_range_over_two_links(
    queue: str, peer1: Peer1, peer: Peer, last: int
) -> None:
    fill(peer1, queue, 5)
    peer1.attach_receiver(f"/queues/{queue}", 1)
    peer1.attach_receiver(f"/queues/{queue}", 2)
    peer1.give(1, 2).give(2, 3)
    found = expect_bodies(peer1, b"0", b"1", b"2", b"3", b"4")
    assert len({each.value.delivery_tag for each in found}) == 5
    peer1.send(c.Disposition(True, 1, 1, True, ACCEPTED))
    peer1.send(c.Disposition(True, 0, last, True, ACCEPTED))
    peer1.send(c.Disposition(True, 0, 9, True, ACCEPTED), c.Detach(1, True), c.Detach(2, True))
    peer1.expect(c.Detach)
    peer1.expect(c.Detach)
    peer.send(BasicGet(queue=queue))
    peer.expect(BasicGetEmpty)


@pytest.mark.rule("1.0#114", "1.0#115")
def test_an_outcome_that_is_not_settled_is_answered(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 3)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=3, rcv_settle_mode=1)
    expect_bodies(peer1, b"0", b"1", b"2")
    peer1.send(c.Disposition(True, 0, 1, False, ACCEPTED))
    peer1.expect(c.Disposition, role=False, first=0, last=1, settled=True, state=ACCEPTED)
    peer1.send(c.Disposition(True, 2, None, False, c.Released()))
    peer1.give(1, 4)
    found = [peer1.next().value, peer1.next().value]
    assert {type(each) for each in found} == {c.Disposition, c.Transfer}


def test_a_state_without_an_outcome_changes_nothing(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 1)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=9)
    expect_bodies(peer1, b"0")
    peer1.send(c.Disposition(True, 0, None, False, c.Received(0, 0)))
    peer1.send(c.Disposition(True, 0), c.Disposition(False, 0, 9, True, ACCEPTED))
    peer1.quiet()


@pytest.mark.rule("1.0#113", "1.0#142")
@pytest.mark.parametrize("state", [RELEASED, c.Modified(), None])
def test_a_released_message_is_back_in_its_place(
    queue: str, peer1: Peer1, state: c.Released | None
) -> None:
    fill(peer1, queue, 3)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=2)
    expect_bodies(peer1, b"0", b"1")
    peer1.send(c.Disposition(True, 0, 1, True, state))
    peer1.give(1, 3, delivery_count=2)
    first, second, third = expect_bodies(peer1, b"0", b"1", b"2")
    header = sections_of(first).header()
    assert (header.first_acquirer, header.delivery_count) == (False, 0)
    assert sections_of(third).header().first_acquirer
    assert second.value.delivery_id == 3


def _quorum(peer: Peer, name: str, **arguments: Any) -> None:
    """A quorum queue whose dead letters go to another one."""
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    peer.send(QueueDeclare(queue=f"{name}-dead", durable=True))
    peer.expect(QueueDeclareOk)
    arguments = {"x-queue-type": "quorum"} | letters | arguments
    peer.send(QueueDeclare(queue=name, durable=True, arguments=arguments))
    peer.expect(QueueDeclareOk)


@pytest.mark.rule("1.0#130", "1.0#143")
def test_a_quorum_queue_counts_what_has_failed(peer: Peer, peer1: Peer1, name: str) -> None:
    _quorum(peer, name)
    fill(peer1, name, 1)
    peer1.attach_receiver(f"/queues/{name}", 1, credit=9)
    assert sections_of(expect_bodies(peer1, b"0")[0]).header().delivery_count == 0
    failed = c.Modified(delivery_failed=True)
    for number, (state, count) in enumerate([(failed, 1), (RELEASED, 1), (failed, 2)]):
        peer1.send(c.Disposition(True, number, None, True, state))
        found = sections_of(expect_bodies(peer1, b"0")[0])
        assert found.header().delivery_count == count
        assert not found.header().first_acquirer
        assert found.message_annotations()["x-delivery-count"] == count


@pytest.mark.rule("1.0#141", "1.0#144")
@pytest.mark.parametrize("state", [c.Rejected(), c.Modified(undeliverable_here=True)])
def test_a_rejected_message_is_dead_lettered(
    peer: Peer, peer1: Peer1, name: str, state: c.Rejected
) -> None:
    _quorum(peer, name)
    fill(peer1, name, 2)
    peer1.attach_receiver(f"/queues/{name}-dead", 2, credit=9)
    peer1.attach_receiver(f"/queues/{name}", 1, credit=9)
    expect_bodies(peer1, b"0", b"1")
    peer1.send(c.Disposition(True, 0, 1, True, state))
    found = expect_bodies(peer1, b"0", b"1")
    assert [each.value.handle for each in found] == [2, 2]


@pytest.mark.parametrize("state", [True, "accepted", [], Described(ULong(0x24), [1]), c.Source()])
def test_a_state_that_is_no_outcome_is_named_also_without_a_delivery(
    peer1: Peer1, state: object
) -> None:
    peer1.send(c.Disposition(True, 0, None, False, state))
    found = peer1.next("the error").value
    assert type(found) in (c.End, c.Close)
    assert found.error.condition in ("amqp:invalid-field", "amqp:decode-error")
    if isinstance(found, c.Close):
        peer1.opened = False
        peer1.send(c.Close())
        peer1.expect_end()


def test_a_state_that_is_no_outcome_ends_the_session(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 1)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=9)
    expect_bodies(peer1, b"0")
    peer1.send(c.Disposition(True, 0, None, True, Described(Symbol("lost"), [])))
    peer1.expect_error(c.End, "amqp:invalid-field", "Unrecognised state", "in DISPOSITION")
    peer1.send(c.End())


def test_ends_requeue_what_is_not_settled(queue: str, connect1: Connect1) -> None:
    peer = connect1().open().begin()
    fill(peer, queue, 2)
    for end in ("end", "close", "drop"):
        peer.attach_receiver(f"/queues/{queue}", 1, credit=9)
        expect_bodies(peer, b"0", b"1")
        if end == "end":
            peer.send(c.End())
            peer.expect(c.End)
            peer.begin()
            continue
        if end == "close":
            peer.close()
        else:
            peer.drop()
        peer = connect1().open().begin()
    peer.attach_receiver(f"/queues/{queue}", 1, credit=9)
    expect_bodies(peer, b"0", b"1")


# --- what a delivery says -----------------------------------------------------------------------


@pytest.mark.rule("1.0#125", "1.0#131", "1.0#132", "1.0#139")
def test_the_bare_message_is_unchanged(queue: str, peer1: Peer1) -> None:
    # A uint and a list in long forms, an array, a footer: encoding them again would shorten them.
    fields = b"\0\x80\0\0\0\0\0\0\0\x73\xd0\0\0\0\x0d\0\0\0\2\xa1\2id\xb0\0\0\0\0"
    own = b"\0\x53\x74\xd1\0\0\0\x0f\0\0\0\2\xb1\0\0\0\1k\x70\0\0\0\1"
    body = data_section(b"a") + b"\0\x53\x75\xb0\0\0\0\1b"
    footer = b"\0\x53\x78\xc1\x07\2\xa3\3x-f\x43"
    annotations = encode_sections(message_annotations={"x-mine": UInt(7)})
    delivery_annotations = b"\0\x53\x71" + annotations[3:]
    header = c.Header(durable=True, priority=3, ttl=90_000_000).encoded()
    payload = header + delivery_annotations + annotations + fields + own + body + footer
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.transfer_payload(0, payload)
    peer1.expect(c.Disposition, state=ACCEPTED)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=1)
    found = peer1.expect_transfer()
    assert found.payload.endswith(fields + own + body + footer)
    before = Sections(found.payload[: -len(fields + own + body + footer)])
    header_found = before.header()
    assert (header_found.durable, header_found.priority) == (True, 3)
    assert 0 < header_found.ttl <= 90_000_000
    assert header_found.first_acquirer
    assert before.message_annotations() == {
        "x-mine": 7,
        "x-exchange": "",
        "x-routing-key": queue,
    }


@pytest.mark.rule("1.0#126")
def test_a_message_without_a_header_gets_the_defaults(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.transfer(0, b"x")
    peer1.expect(c.Disposition)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=1)
    header = sections_of(peer1.expect_transfer()).header()
    assert (header.durable, header.ttl, header.delivery_count) == (False, None, 0)


@pytest.mark.rule("1.0#129")
def test_a_message_expires_after_its_ttl(
    connect_memory: Any, memory: Any, memory1: Connect1, name: str
) -> None:
    peer = memory1().open().begin()
    peer.attach_sender(f"/queue/{name}", 0)
    for ttl in (1_000, 100_000):
        peer.transfer(0, b"%d" % ttl, sections=c.Header(ttl=ttl).encoded())
        peer.expect(c.Disposition)
    memory.pass_time(2)
    peer.attach_receiver(f"/queue/{name}", 1, credit=9)
    found = expect_bodies(peer, b"100000")[0]
    assert 90_000 <= sections_of(found).header().ttl <= 98_000


# --- streams ------------------------------------------------------------------------------------


def _stream(peer: Peer, name: str) -> None:
    peer.send(QueueDeclare(queue=name, durable=True, arguments={"x-queue-type": "stream"}))
    peer.expect(QueueDeclareOk)


@pytest.mark.rule("1.0#147")
@pytest.mark.parametrize(
    ("value", "first"),
    [
        (Described(Symbol("rabbitmq:stream-offset-spec"), "first"), 0),
        (Described(Symbol("rabbitmq:stream-offset-spec"), ULong(2)), 2),
        (Described(Symbol("rabbitmq:stream-offset-spec"), "last"), 4),
        ("first", 0),
    ],
)
def test_a_stream_is_read_from_an_offset(
    peer: Peer, peer1: Peer1, name: str, value: Any, first: int
) -> None:
    _stream(peer, name)
    peer1.attach_sender(f"/queues/{name}", 0)
    for number in range(5):
        peer1.transfer(0, b"%d" % number)
        peer1.expect(c.Disposition)
    key = Symbol("rabbitmq:stream-offset-spec")
    source = c.Source(f"/queues/{name}", filter={key: value, Symbol("other"): 3})
    answer = peer1.attach_receiver("", 1, source=source, credit=3)
    assert answer.source.filter == {key: value}
    assert answer.source.distribution_mode == "copy"
    bodies = [b"%d" % number for number in range(first, min(first + 3, 5))]
    found = expect_bodies(peer1, *bodies)
    assert sections_of(found[0]).message_annotations()["x-stream-offset"] == first
    # Settling is no credit.
    peer1.send(c.Disposition(True, 0, len(bodies) - 1, True, ACCEPTED))
    peer1.quiet()
    peer1.give(1, 100, delivery_count=len(bodies), drain=True)
    expect_bodies(peer1, *(b"%d" % number for number in range(first + 3, 5)))
    peer1.expect(c.Flow, handle=1, drain=True, delivery_count=len(bodies) + 100)


def test_a_stream_can_be_read_settled(peer: Peer, peer1: Peer1, name: str) -> None:
    _stream(peer, name)
    key = Symbol("rabbitmq:stream-offset-spec")
    source = c.Source(f"/queues/{name}", filter={key: Described(key, "first")})
    peer1.attach_receiver("", 1, source=source, credit=2, snd_settle_mode=SETTLED)
    peer1.attach_sender(f"/queues/{name}", 0)
    for number in range(2):
        peer1.transfer(0, b"%d" % number)
        found = [peer1.next(), peer1.next()]
        assert {type(each.value) for each in found} == {c.Disposition, c.Transfer}


# --- version 1 ----------------------------------------------------------------------------------


def test_a_source_that_is_an_exchange(peer: Peer, peer1: Peer1, name: str) -> None:
    peer1.attach_receiver(f"/topic/{name}.*", 1, credit=9)
    peer1.attach_receiver(f"/exchange/amq.topic/{name}.#", 2, credit=9)
    peer1.attach_sender(f"/topic/{name}.a", 0)
    peer1.transfer(0, b"x")
    found = [peer1.next().value for _ in range(3)]
    assert sorted(type(each).__name__ for each in found) == [
        "Disposition",
        "Transfer",
        "Transfer",
    ]
    peer.send(QueueDeclare(queue=name))
    peer.expect(QueueDeclareOk)
    peer.send(QueueBind(queue=name, exchange="amq.topic", routing_key=f"{name}.b"))
    peer.expect(QueueBindOk)


@pytest.mark.parametrize("address", ["{name}", "/queue/{name}", "/amq/queue/{name}"])
def test_a_queue_is_read_by_an_address_of_version_1(
    peer: Peer, connect1: Connect1, name: str, address: str
) -> None:
    peer1 = connect1().open().begin()
    if address.startswith("/amq"):
        peer.send(QueueDeclare(queue=name))
        peer.expect(QueueDeclareOk)
    asked = address.format(name=name)
    answer = peer1.attach_receiver(asked, 1, credit=1)
    assert answer.source.address == asked
    assert peer1.attach_sender(asked, 0).target.address == asked
    peer1.transfer(0, b"x")
    assert {type(peer1.next().value) for _ in range(2)} == {c.Disposition, c.Transfer}


# --- other versions -----------------------------------------------------------------------------


def test_a_message_of_0_9_1_reaches_a_receiver_of_1_0(peer: Peer, queue: str, peer1: Peer1) -> None:
    properties = BasicProperties(content_type="text/plain", delivery_mode=2, headers={"a": "b"})
    peer.publish("", queue, b"hello", properties)
    assert peer.count(queue) == 1
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=1)
    found = expect_bodies(peer1, b"hello")[0]
    sections = sections_of(found)
    assert sections.header().durable
    assert sections.properties().content_type == "text/plain"
    assert sections.application_properties() == {"a": "b"}


def test_a_message_of_1_0_reaches_a_consumer_of_0_9_1(peer: Peer, queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    own = encode_sections(c.Header(durable=True), None, None, {"a": "b"})
    peer1.transfer(0, b"hello", sections=own)
    peer1.expect(c.Disposition, state=ACCEPTED)
    found = peer.get(queue)
    assert found.body == b"hello"
    assert (found.properties.delivery_mode, found.properties.headers) == (2, {"a": "b"})


# --- limits -------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#146")
def test_a_delivery_that_is_not_settled_in_time_is_released(
    memory: Any, memory1: Connect1, name: str
) -> None:
    peer = memory1().open(idle_time_out=0).begin()
    peer.attach_sender(f"/queue/{name}", 0)
    peer.transfer(0, b"x", settled=True)
    overdue = DeliveryAckTimeout(memory.registry, 0)
    properties = {Symbol("rabbitmq:consumer-timeout"): UInt(1_000)}
    peer.attach_receiver(f"/queues/{name}", 1, credit=1, properties=properties)
    expect_bodies(peer, b"x")
    for now in (1.0, 1.5, 2.5, 3.5):
        overdue.look(now)
        overdue.look(now)
    memory.turn()
    peer.expect(c.Disposition, role=False, first=0, settled=True, state=RELEASED)
    # The link goes on.
    peer.give(1, 1, delivery_count=1)
    expect_bodies(peer, b"x")


@pytest.mark.rule("1.0#091")
def test_a_message_that_the_peer_does_not_take(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 1)
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.transfer(0, bytes(200), settled=True)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=5, max_message_size=100)
    expect_bodies(peer1, b"0")
    peer1.expect_error(c.Detach, "amqp:link:message-size-exceeded", "maximum message size (100")
    peer1.send(c.Detach(1, True))
    peer1.attach_receiver(f"/queues/{queue}", 2, credit=5)
    expect_bodies(peer1, b"0", bytes(200))


def test_a_peer_may_have_the_largest_limit_that_there_is(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 1)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=5, max_message_size=2**64 - 1)
    expect_bodies(peer1, b"0")


def test_a_message_that_the_peer_does_not_take_stays_although_its_link_settles(
    queue: str, peer1: Peer1
) -> None:
    fill(peer1, queue, 1)
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.transfer(0, bytes(200), settled=True)
    fields = {"max_message_size": 100, "snd_settle_mode": SETTLED}
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=5, **fields)
    expect_bodies(peer1, b"0")
    peer1.expect_error(c.Detach, "amqp:link:message-size-exceeded", "maximum message size (100")
    peer1.send(c.Detach(1, True))
    peer1.attach_receiver(f"/queues/{queue}", 2, credit=5)
    expect_bodies(peer1, bytes(200))


def test_frames_of_a_large_message_are_made_as_the_peer_takes_them(
    memory: MemorySite, memory1: Connect1, name: str
) -> None:
    body = bytes(range(256)) * 12_000
    writer = memory1().open().begin()
    writer.attach_sender(f"/queue/{name}", 0)
    payload, size = data_section(body), 100_000
    for at in range(0, len(payload), size):
        more = at + size < len(payload)
        writer.transfer_payload(0, payload[at : at + size], settled=True, more=more)
    peer = memory1().open(max_frame_size=512).begin(window=2)
    peer.attach_receiver(f"/queue/{name}", 1)
    peer.send(c.Flow(0, 2, 0, 2048, 1, 0, 1))
    found = [peer.expect_transfer(more=True).payload for _ in range(2)]
    assert peer.maybe() is None
    connection = peer.wire.connection
    (waiting,) = connection.channels[0].backlog
    assert waiting.left > len(body) - 1_024
    assert kept_bytes(connection) > waiting.left
    peer.wire.stop_reading()
    peer.send(c.Flow(2, 1 << 20, 0, 2048))
    assert waiting.left > len(body) - 1_024
    connection.congested = False
    peer.wire.reading = True
    connection.relieved()
    assert connection.out.size < 2 * OUTPUT_HIGH_BYTES
    memory.turn()
    while True:
        arrived = peer.next("the rest of the message")
        found.append(arrived.payload)
        if not arrived.value.more:
            break
    assert split(b"".join(found))[1] == body
    assert max(peer.sizes) == 512
    assert not connection.channels[0].backlog


def test_consumers_of_a_session_are_limited(name: str) -> None:
    site = MemorySite(consumer_max_per_channel=1)
    peer = Peer1(site, site.connect()).open().begin()
    peer.attach_receiver(f"/queue/{name}", 1)
    asked = c.Attach("r", 2, True, source=c.Source(f"/queue/{name}"), target=c.Target())
    words = "reached maximum (1) of consumers per session"
    peer.expect_refused(asked, "amqp:resource-limit-exceeded", words)
    peer.done()


def test_links_and_messages_in_part_count_for_their_connection(
    memory: Any, memory1: Connect1, name: str
) -> None:
    peer = memory1().open().begin()
    connection = next(iter(memory.registry.connections))
    before = kept_bytes(connection)
    for handle in range(10):
        peer.attach_sender(f"/queue/{name}", handle)
    peer.transfer_payload(0, bytes(5_000), more=True)
    assert kept_bytes(connection) >= before + 10 * LINK_BYTES + 5_000
    peer.send(c.End())
    peer.expect(c.End)
    assert kept_bytes(connection) == before


def test_a_peer_that_reads_nothing_is_not_read(memory: Any, memory1: Connect1, name: str) -> None:
    peer = memory1().open().begin()
    wire: Any = peer.wire
    connection = next(iter(memory.registry.connections))
    wire.stop_reading()
    echo = encode_frame(c.Flow(None, 1, 0, 1, echo=True).encoded()) * 1_000
    for _ in range(400):
        peer.send_bytes(echo)
        if connection.scanner.hold:
            break
    assert connection.scanner.hold
    assert connection.out.size < 2 * OUTPUT_STOP_BYTES
    peer.opened = False


@pytest.mark.rule("1.0#091")
@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "quorum"}], ids=["classic", "quorum"])
def test_a_settled_message_that_the_peer_does_not_take_stays_in_the_queue(
    peer: Peer, peer1: Peer1, name: str, arguments: dict[str, Any]
) -> None:
    peer.send(QueueDeclare(queue=name, durable=True, arguments=arguments))
    peer.expect(QueueDeclareOk)
    fill(peer1, name, 1)
    peer1.attach_sender(f"/queues/{name}", 0)
    asked = {"snd_settle_mode": SETTLED, "max_message_size": 100}
    peer1.attach_receiver(f"/queues/{name}", 1, credit=9, **asked)
    assert peer1.expect_transfer(settled=True).payload.endswith(b"0")
    # Both ways: a message that waits, and one that comes when the link has credit.
    peer1.transfer(0, bytes(200), settled=True)
    peer1.expect_error(c.Detach, "amqp:link:message-size-exceeded", "maximum message size (100")
    peer1.send(c.Detach(1, True))
    peer1.attach_receiver(f"/queues/{name}", 1, credit=9, **asked)
    peer1.expect_error(c.Detach, "amqp:link:message-size-exceeded", "maximum message size (100")
    peer1.send(c.Detach(1, True))
    peer1.attach_receiver(f"/queues/{name}", 2, credit=5, snd_settle_mode=SETTLED)
    found = expect_bodies(peer1, bytes(200))[0]
    assert sections_of(found).header().delivery_count == 2
    peer1.quiet()
    assert peer.count(name) == 0


def test_a_message_that_the_peer_does_not_take_is_logged(
    memory: MemorySite, memory1: Connect1, name: str
) -> None:
    lines: list[str] = []
    memory.settings.log = lambda level, text, *rest: lines.append(f"{level} {text}")
    peer = memory1().open().begin()
    peer.attach_receiver(f"/queue/{name}", 1, credit=5, name="r", max_message_size=100)
    peer.attach_sender(f"/queue/{name}", 0)
    peer.transfer(0, bytes(200), settled=True)
    peer.expect_error(c.Detach, "amqp:link:message-size-exceeded")
    peer.send(c.Detach(1, True))
    assert any("link 'r' ended: message size (" in line for line in lines), lines


# --- single active consumer ---------------------------------------------------------------------

ACTIVE = Symbol("rabbitmq:active")


def _expect_active(peer: Peer1, handle: int, active: bool) -> None:
    flow = peer.expect(c.Flow, handle=handle)
    assert flow.properties == {ACTIVE: active}


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "quorum"}], ids=["classic", "quorum"])
def test_a_link_is_told_when_it_becomes_the_single_active_consumer(
    peer: Peer, peer1: Peer1, name: str, arguments: dict[str, Any]
) -> None:
    arguments = {"x-single-active-consumer": True} | arguments
    peer.send(QueueDeclare(queue=name, durable=True, arguments=arguments))
    peer.expect(QueueDeclareOk)
    fill(peer1, name, 2)
    for handle in (1, 2):
        peer1.attach_receiver(f"/queues/{name}", handle)
        _expect_active(peer1, handle, handle == 1)
    peer1.give(2, 9)
    peer1.give(1, 1)
    expect_bodies(peer1, b"0")
    peer1.send(c.Detach(1, True))
    # It hears of it before the messages, and there is no flow for a link that is gone.
    _expect_active(peer1, 2, True)
    expect_bodies(peer1, b"0", b"1")
    peer1.expect(c.Detach, handle=1)
    peer1.quiet()


def test_a_link_is_told_when_another_one_takes_over(peer: Peer, peer1: Peer1, name: str) -> None:
    arguments = {"x-single-active-consumer": True, "x-queue-type": "quorum"}
    peer.send(QueueDeclare(queue=name, durable=True, arguments=arguments))
    peer.expect(QueueDeclareOk)
    peer1.attach_receiver(f"/queues/{name}", 1, credit=9)
    _expect_active(peer1, 1, True)
    higher = c.Attach(
        "higher",
        2,
        True,
        source=c.Source(f"/queues/{name}"),
        target=c.Target(),
        properties={Symbol("rabbitmq:priority"): 5},
    )
    peer1.send(higher)
    _expect_active(peer1, 1, False)
    peer1.expect(c.Attach, handle=2)
    _expect_active(peer1, 2, True)
    fill(peer1, name, 1)
    peer1.give(2, 9)
    assert peer1.expect_transfer(handle=2)


def test_a_link_of_an_ordinary_queue_is_told_nothing(queue: str, peer1: Peer1) -> None:
    peer1.attach_receiver(f"/queues/{queue}", 1)
    peer1.quiet()
