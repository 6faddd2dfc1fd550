"""kill -9 of a broker that keeps links of AMQP 1.0: they are resumed, and nothing is lost.

What it has kept of links goes with it. A consumer then gets again what it has not settled, marked;
a publisher learns no outcome, and sends again.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import encode_sections
from harebell.wire.v1.values import Symbol
from tests.conformance.sites import Site, SocketWire
from tests.conformance.v1.raw import Arrived, Peer1
from tests.conformance.v1.test_consuming import body_of, sections_of
from tests.robustness.lives import kill, life
from tests.running import RunningBroker

_SECOND = 1
_COUNT = 20
_LASTING: dict[str, Any] = {"expiry_policy": Symbol("never"), "durable": 2}
_DURABLE = encode_sections(c.Header(durable=True))
_ACCEPTED = c.Accepted()


def _peer(broker: RunningBroker) -> Peer1:
    site = cast("Site", SimpleNamespace())
    return Peer1(site, SocketWire(broker.port)).open(container="kept").begin()


def _publisher(peer: Peer1, unsettled: Any) -> c.Attach:
    target = c.Target("/queue/kept", **_LASTING)
    return peer.attach_sender(
        None, name="p", target=target, rcv_settle_mode=_SECOND, unsettled=unsettled
    )


def _consumer(peer: Peer1, unsettled: Any) -> c.Attach:
    source = c.Source("/queues/kept", **_LASTING)
    return peer.attach_receiver(None, name="c", source=source, unsettled=unsettled, credit=100)


def _publish(peer: Peer1, number: int) -> None:
    peer.transfer(0, b"%d" % number, sections=_DURABLE, delivery_tag=b"%d" % number)


def _until_drained(peer: Peer1) -> list[Arrived]:
    peer.send(c.Flow(0, 2_048, 0, 2_048, 1, 0, 100, drain=True))
    found: list[Arrived] = []
    while True:
        each = peer.next()
        if isinstance(each.value, c.Flow) and each.value.drain:
            return found
        if isinstance(each.value, c.Transfer):
            found.append(each)


def test_what_is_kept_for_links_is_delivered_again_after_a_kill(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with life(data) as broker:
        peer = _peer(broker)
        _publisher(peer, {})
        # One after the other, so that all of them have their outcome.
        for number in range(_COUNT):
            _publish(peer, number)
            peer.expect(c.Disposition, settled=False, state=_ACCEPTED)
        _consumer(peer, {})
        seen = [peer.expect_transfer(handle=1) for _ in range(_COUNT)]
        tags = {body_of(each): each.value.delivery_tag for each in seen}
        # Some are accepted, the links are left in the midst of everything, and the last messages
        # have no outcome yet.
        first = seen[0].value.delivery_id
        peer.send(c.Disposition(True, first, first + 4, True, _ACCEPTED))
        peer.send(c.Flow(0, 2_048, _COUNT, 2_048, echo=True))
        peer.expect(c.Flow, handle=None)
        for number in range(_COUNT, _COUNT + 5):
            _publish(peer, number)
        kill(broker)
    with life(data) as broker:
        peer = _peer(broker)
        unsettled = {b"%d" % number: None for number in range(_COUNT + 5)}
        answer = _publisher(peer, unsettled)
        # It knows of no outcome: the publisher sends again what it is not sure of.
        assert not answer.unsettled
        for number in range(_COUNT, _COUNT + 5):
            _publish(peer, number)
            peer.expect(c.Disposition, settled=False, state=_ACCEPTED)
        kept = {tag: None for body, tag in tags.items() if int(body) >= 5}
        answer = _consumer(peer, kept)
        assert not answer.unsettled
        # Also what was accepted may come again: no outcome of a consumer is confirmed.
        transfers = _until_drained(peer)
        bodies = {body_of(each) for each in transfers}
        assert bodies >= {b"%d" % number for number in range(5, _COUNT + 5)}
        for each in transfers:
            # Whatever has been delivered before says so; what was sent again is a second message.
            if body_of(each) in tags:
                assert not sections_of(each).header().first_acquirer
            assert not each.value.resume
