"""A leased queue whose head has expired, as a query that is to end asks for what is behind it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from harebell.client.protocol.leases import Lease
from harebell.spark.options.source_options import parse
from harebell.spark.reading.leased.leased_reader import LeasedReader
from harebell.wire.v09.lease import ClaimInfo

AT_ONCE = 50


class Broker:
    """A queue as a channel shows it: a claim looks at so many messages, and expired ones go.

    Args:
        expired: messages at the head that have expired.
        held: messages behind these that nobody gets.
        fresh: messages behind these.
    """

    made = 1

    def __init__(self, expired: int, held: int, fresh: int) -> None:
        self.expired = expired
        self.held = held
        self.fresh = fresh
        self.requested = 0

    def opened(self) -> Any:
        return self

    def eras(self, queue: str, group: str = "") -> str:
        return "0000000000000001:0"

    def call(self, what: Callable[[Any], Any]) -> Any:
        return what(self)

    def declare_queue(self, name: str, *, passive: bool) -> Any:
        assert passive
        return SimpleNamespace(message_count=self.expired + self.held + self.fresh)

    def lease_open(self, *_: Any, **__: Any) -> Lease:
        return Lease(1, "g", 0, 0, 0, 0, ())

    def lease_claim(self, queue: str, group: str, epoch: int, messages: int, octets: int) -> Any:
        self.requested += 1
        looked = min(AT_ONCE, self.expired)
        self.expired -= looked
        found = min(messages, self.fresh) if looked < AT_ONCE and not self.held else 0
        self.fresh -= found
        return ClaimInfo(1, found, 0, 0, found) if found else None


def ended(broker: Broker) -> int:
    """How many claims a query has when it thinks that there is no more."""
    options = parse({"queue": "q"}, {})
    part = LeasedReader(options, cast("Any", broker), "classic")
    start = part.begin()
    part.prepare()
    end = part.advance(start, 1_000, None)
    return int(end != start)


def test_a_query_that_is_to_end_asks_until_nothing_expires_any_more() -> None:
    broker = Broker(expired=1_000, held=0, fresh=5)
    assert ended(broker) == 1
    assert (broker.expired, broker.fresh, broker.requested) == (0, 0, 21)


def test_messages_held_by_others_are_not_asked_for_again_and_again() -> None:
    broker = Broker(expired=0, held=7, fresh=0)
    assert ended(broker) == 0
    assert broker.requested == 2
