"""What is too much goes, is refused, or is counted again when it comes back, in every kind."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.gauge import Gauge
from harebell.base.message import FAMILY_1_0, Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.queue.contract import ACCEPTED, REJECTED
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import Taker, message

KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "grouped": {"x-group-key": "routing_key"},
    "priority": {"x-max-priority": 3},
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    return KINDS[request.param]


class Place:
    """A queue with limits, and one for what it does not keep."""

    def __init__(self, kind: dict[str, Any], **limits: Any) -> None:
        self.host = VHost("/", MemoryStore(Gauge()), EDITOR)
        self.dead = self.host.declare_queue("dead")
        given = {f"x-{name.replace('_', '-')}": value for name, value in limits.items()}
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        self.queue: Any = self.host.declare_queue("q", arguments={**kind, **given, **letters})

    def publish(self, *bodies: bytes) -> list[int]:
        return [self.queue.publish(message(body, body[:1].decode())) for body in bodies]

    def rest(self) -> list[bytes]:
        """What the queue holds, taken."""
        found = []
        while (got := self.queue.get()) is not None:
            found.append(got[0].body)
            self.queue.settle(got[1])
        return found


def test_the_oldest_go_when_there_are_too_many(kind: dict[str, Any]) -> None:
    place = Place(kind, max_length=2)
    assert place.publish(b"1", b"2", b"3", b"4") == [ACCEPTED] * 4
    assert place.rest() == [b"3", b"4"]


def test_the_oldest_go_when_they_are_too_large_together(kind: dict[str, Any]) -> None:
    place = Place(kind, max_length_bytes=10)
    place.publish(b"1" * 4, b"2" * 4, b"3" * 4)
    assert place.rest() == [b"2" * 4, b"3" * 4]
    place.publish(b"4" * 11)
    assert place.rest() == []
    place.publish(b"5" * 10)
    assert place.rest() == [b"5" * 10]


@pytest.mark.parametrize("way", ["reject-publish", "reject-publish-dlx"])
def test_a_new_one_is_refused_where_it_shall_be(kind: dict[str, Any], way: str) -> None:
    place = Place(kind, max_length=1, overflow=way)
    assert place.publish(b"1", b"2") == [ACCEPTED, REJECTED]
    assert place.rest() == [b"1"]
    assert place.publish(b"3") == [ACCEPTED]


def test_outstanding_messages_count_only_when_they_are_back(kind: dict[str, Any]) -> None:
    place = Place(kind, max_length_bytes=8)
    place.publish(b"1" * 4)
    position = place.queue.get()[1]
    place.publish(b"2" * 4, b"3" * 4)
    assert place.queue.ready_count() == 2
    place.queue.requeue(position)
    assert place.rest() == [b"2" * 4, b"3" * 4]


def test_a_delivery_makes_room_for_another_message(kind: dict[str, Any]) -> None:
    place = Place(kind, max_length=1, overflow="reject-publish")
    place.publish(b"1")
    place.queue.add_consumer(Taker(place.queue))
    place.queue.drain()
    assert place.publish(b"2", b"3") == [ACCEPTED] * 2


def test_messages_of_1_0_go_like_those_of_basic(kind: dict[str, Any]) -> None:
    place = Place(kind, max_length=2)
    for body in (b"1", b"2", b"3"):
        properties = Properties(b"", family=FAMILY_1_0)
        place.queue.publish(Message("", body.decode(), properties, body))
    assert not place.queue.spares
    assert place.rest() == [b"2", b"3"]
