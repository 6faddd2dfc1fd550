"""Browsing: a source with the distribution-mode `copy` (AMQP 1.0 3.5.2)."""

from __future__ import annotations

import pytest

from harebell.wire.v09.methods import QueueDeclare, QueueDeclareOk
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import encode_sections
from harebell.wire.v1.values import Described, Symbol
from tests.conformance.raw import Peer
from tests.conformance.v1.raw import Peer1

_COPY = Symbol("copy")


def _fill(peer: Peer1, queue: str, *bodies: bytes, handle: int = 0) -> None:
    peer.attach_sender(f"/queues/{queue}", handle)
    for body in bodies:
        number = peer.transfer(handle, body)
        peer.expect(c.Disposition, first=number, state=c.Accepted())


def _browse(peer: Peer1, queue: str, handle: int = 1, **fields: object) -> c.Attach:
    source = c.Source(f"/queues/{queue}", distribution_mode=_COPY)
    return peer.attach_receiver(None, handle, source=source, **fields)


def _expect(peer: Peer1, *bodies: bytes, handle: int = 1) -> list[int]:
    numbers = []
    for body in bodies:
        arrived = peer.expect_transfer(handle=handle)
        assert arrived.payload.endswith(body)
        numbers.append(arrived.value.delivery_id)
    return numbers


def _ready(peer: Peer, queue: str) -> int:
    peer.send(QueueDeclare(queue=queue, passive=True))
    return peer.expect(QueueDeclareOk).message_count


@pytest.mark.rule("1.0#150", "1.0#152")
@pytest.mark.parametrize("outcome", [c.Accepted(), c.Rejected(), c.Released(), c.Modified(True)])
def test_messages_that_are_browsed_stay_whatever_their_outcome(
    peer: Peer, queue: str, peer1: Peer1, outcome: object
) -> None:
    _fill(peer1, queue, b"1", b"2")
    answer = _browse(peer1, queue)
    assert answer.source.distribution_mode == _COPY
    peer1.give(1, 10)
    first, last = _expect(peer1, b"1", b"2")
    peer1.send(c.Disposition(True, first, last, settled=True, state=outcome))
    peer1.quiet()
    assert _ready(peer, queue) == 2


def test_an_unsettled_outcome_of_a_browser_is_settled(queue: str, peer1: Peer1) -> None:
    _fill(peer1, queue, b"1")
    _browse(peer1, queue)
    peer1.give(1, 10)
    (number,) = _expect(peer1, b"1")
    peer1.send(c.Disposition(True, number, state=c.Accepted()))
    peer1.expect(c.Disposition, role=False, first=number, settled=True, state=c.Accepted())


def test_a_browser_sees_each_message_once_and_those_that_come_later(
    queue: str, peer1: Peer1
) -> None:
    _fill(peer1, queue, b"1", b"2")
    _browse(peer1, queue)
    peer1.give(1, 1)
    _expect(peer1, b"1")
    peer1.give(1, 5, delivery_count=1)
    _expect(peer1, b"2")
    peer1.transfer(0, b"3", settled=True)
    _expect(peer1, b"3")


def test_two_browsers_and_a_consumer_see_the_same_messages(
    peer: Peer, queue: str, peer1: Peer1
) -> None:
    _fill(peer1, queue, b"1", b"2")
    for handle in (1, 2):
        _browse(peer1, queue, handle)
        peer1.give(handle, 10)
        _expect(peer1, b"1", b"2", handle=handle)
    peer1.attach_receiver(f"/queues/{queue}", 3, credit=10, snd_settle_mode=1)
    _expect(peer1, b"1", b"2", handle=3)
    peer1.quiet()
    assert _ready(peer, queue) == 0


def test_a_drain_ends_when_everything_was_seen(queue: str, peer1: Peer1) -> None:
    bodies = [b"%03d" % number for number in range(300)]
    _fill(peer1, queue, *bodies)
    _browse(peer1, queue)
    peer1.give(1, 1_000, drain=True)
    _expect(peer1, *bodies)
    peer1.expect(c.Flow, handle=1, drain=True, link_credit=0, delivery_count=1_000)
    # Nothing is left: the next one is answered at once.
    peer1.give(1, 5, drain=True, delivery_count=1_000)
    peer1.expect(c.Flow, handle=1, drain=True, link_credit=0, delivery_count=1_005)


def test_a_browser_with_a_selector_sees_what_it_selects(queue: str, peer1: Peer1) -> None:
    _fill(peer1, queue, b"plain")
    sections = encode_sections(application_properties={"kind": "wanted"})
    number = peer1.transfer(0, b"picked", sections=sections)
    peer1.expect(c.Disposition, first=number)
    name = "apache.org:selector-filter:string"
    selector = {Symbol("s"): Described(Symbol(name), "kind = 'wanted'")}
    source = c.Source(f"/queues/{queue}", distribution_mode=_COPY, filter=selector)
    peer1.attach_receiver(None, 1, source=source)
    peer1.give(1, 10, drain=True)
    _expect(peer1, b"picked")
    peer1.expect(c.Flow, handle=1, drain=True, link_credit=0)


def test_a_browser_that_is_detached_leaves_the_queue_as_it_is(
    peer: Peer, queue: str, peer1: Peer1
) -> None:
    _fill(peer1, queue, b"1")
    _browse(peer1, queue, snd_settle_mode=1)
    peer1.give(1, 10)
    _expect(peer1, b"1")
    peer1.send(c.Detach(1, True))
    peer1.expect(c.Detach, handle=1)
    assert _ready(peer, queue) == 1
    peer1.attach_receiver(f"/queues/{queue}", 2, credit=1)
    arrived = peer1.expect_transfer(handle=2)
    assert arrived.payload.endswith(b"1")
