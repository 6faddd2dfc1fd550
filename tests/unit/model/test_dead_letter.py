"""Dead letters: where they go, what they tell of their past, and when they go round no more."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.bcc import hidden
from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.front.convert import EDITOR, headers_of
from harebell.model.dead_letter import GONE, NOWHERE, is_cycle
from harebell.model.queue.contract import REJECTED
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)

CLOCK = Clock(1_700_000_000_999)


def place() -> VHost:
    where = VHost("/", MemoryStore(Gauge()), EDITOR, CLOCK)
    where.declare_exchange("dlx", "fanout")
    where.bind("dlx", where.declare_queue("dead"), "")
    return where


def letter(key: str = "q", exchange: str = "", **properties: Any) -> Message:
    raw = encode_properties(BasicProperties(**properties))
    return Message(exchange, key, parse_properties(raw), b"body")


def source(where: VHost, name: str = "q", **arguments: str) -> Any:
    extra = {f"x-dead-letter-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return where.declare_queue(name, arguments={"x-dead-letter-exchange": "dlx", **extra})


def received(where: VHost, name: str = "dead") -> Message:
    found = where.queues[name].get()
    assert found is not None
    where.queues[name].settle(found[1])
    return found[0]


def test_a_letter_tells_of_its_first_death() -> None:
    where = place()
    dying = source(where)
    message = letter(expiration="60000", headers={"mine": 1}, content_type="text/plain")
    assert dying.dead_letters.send(message, "rejected") == 0
    got = received(where)
    assert (got.exchange, got.routing_key, got.body) == ("dlx", "q", b"body")
    properties = decode_properties(got.raw)
    assert (properties.expiration, properties.content_type) == (None, "text/plain")
    headers = headers_of(got)
    (event,) = headers["x-death"]
    assert list(event) == [
        "original-expiration", "count", "reason", "queue", "time", "exchange", "routing-keys",
    ]  # fmt: skip
    assert event["original-expiration"] == "60000"
    assert (event["count"], event["reason"], event["queue"]) == (1, "rejected", "q")
    assert (event["exchange"], event["routing-keys"]) == ("", ["q"])
    assert int(event["time"].timestamp()) == 1_700_000_000
    assert b"\x05countl" in got.raw
    assert headers["mine"] == 1
    for which in ("first", "last"):
        about = [headers[f"x-{which}-death-{what}"] for what in ("reason", "queue", "exchange")]
        assert about == ["rejected", "q", ""]


def test_the_same_death_is_counted_and_another_comes_first() -> None:
    where = place()
    first, second = source(where, "one"), source(where, "two")
    first.dead_letters.send(letter(), "rejected")
    second.dead_letters.send(received(where), "rejected")
    first.dead_letters.send(received(where), "rejected")
    headers = headers_of(received(where))
    assert [(e["queue"], e["count"]) for e in headers["x-death"]] == [("one", 2), ("two", 1)]
    assert (headers["x-first-death-queue"], headers["x-last-death-queue"]) == ("one", "one")
    assert headers["x-last-death-exchange"] == "dlx"


def test_a_first_death_without_a_history_is_not_believed() -> None:
    where = place()
    dying = source(where)
    told = {f"x-first-death-{what}": "told" for what in ("reason", "queue", "exchange")}
    dying.dead_letters.send(letter(headers=told), "rejected")
    assert headers_of(received(where))["x-first-death-queue"] == "q"


def test_a_routing_key_of_the_queue_replaces_all_others() -> None:
    where = place()
    dying = source(where, routing_key="new")
    dying.dead_letters.send(letter(headers={"CC": ["copy"], "BCC": ["blind"]}), "rejected")
    got = received(where)
    assert got.routing_key == "new"
    headers = headers_of(got)
    assert "CC" not in headers
    assert "BCC" not in headers
    assert headers["x-death"][0]["routing-keys"] == ["q", "copy"]


def test_a_letter_is_routed_by_its_copies_too() -> None:
    where = place()
    for name in ("copy", "blind"):
        where.declare_queue(name)
    dying = where.declare_queue("q", arguments={"x-dead-letter-exchange": ""})
    message = letter("gone", headers={"CC": ["copy"], "BCC": ["blind"]})
    dying.dead_letters.send(message, "rejected")  # type: ignore[attr-defined]
    assert headers_of(received(where, "copy"))["CC"] == ["copy"]
    assert "BCC" not in headers_of(received(where, "blind"))


def test_blind_keys_count_at_every_death_and_nobody_sees_them() -> None:
    where = place()
    where.declare_exchange("last", "direct")
    where.bind("last", where.declare_queue("blind"), "blind")
    dying = source(where)
    dying.dead_letters.send(hidden(letter(headers={"BCC": ["blind"]})), "rejected")
    once = received(where)
    assert "BCC" not in headers_of(once)
    again = where.declare_queue("again", arguments={"x-dead-letter-exchange": "last"})
    again.dead_letters.send(once, "expired")  # type: ignore[attr-defined]
    (newest, _) = headers_of(received(where, "blind"))["x-death"]
    assert (newest["queue"], newest["routing-keys"]) == ("again", ["q"])


def test_unroutable_dead_letters_are_told_apart() -> None:
    where = place()
    dying = source(where)
    where.unbind("dlx", where.queues["dead"], "")
    assert dying.dead_letters.send(letter(), "rejected") == NOWHERE
    where.delete_exchange("dlx")
    assert dying.dead_letters.send(letter(), "rejected") == GONE


def test_a_full_quorum_queue_takes_dead_letters_that_nobody_sends_again() -> None:
    where = place()
    arguments = {"x-queue-type": "quorum", "x-max-length": 1, "x-overflow": "reject-publish"}
    full = where.declare_queue("full", durable=True, arguments=arguments)
    where.bind("dlx", full, "")
    dying = source(where)
    assert [bool(dying.dead_letters.send(letter(), "rejected") & REJECTED) for _ in range(4)] == [
        False
    ] * 4
    assert full.ready_count() == 4
    assert full.publish(letter()) & REJECTED
    assert dying.dead_letters.send(letter(), "rejected", set()) & REJECTED
    assert full.ready_count() == 4


def test_a_letter_that_is_sent_again_goes_only_where_it_was_refused() -> None:
    where = place()
    arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    full = where.declare_queue("full", arguments=arguments)
    where.bind("dlx", full, "")
    dying = source(where)
    taken: set[str] = set()
    for _ in range(3):
        assert dying.dead_letters.send(letter(), "rejected", taken) & REJECTED
    assert where.queues["dead"].ready_count() == 1
    assert taken == {"dead"}


@pytest.mark.parametrize(("reason", "comes_back"), [("rejected", True), ("expired", False)])
def test_only_a_rejected_message_may_come_back_to_the_queue_it_died_in(
    reason: str, comes_back: bool
) -> None:
    where = place()
    dying: Any = where.declare_queue(
        "q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    )
    assert dying.dead_letters.send(letter(), reason) == 0
    assert dying.ready_count() == comes_back


@pytest.mark.parametrize(
    ("history", "queue", "expected"),
    [
        ([], "q", False),
        ([("q", "expired")], "q", True),
        ([("w", "expired")], "q", False),
        ([("w", "expired"), ("q", "rejected")], "q", False),
        ([("w", "rejected"), ("q", "expired")], "q", False),
        ([("w", "expired"), ("q", "expired"), ("v", "rejected")], "q", True),
    ],
)
def test_a_rejection_on_the_way_ends_a_round(
    history: list[tuple[str, str]], queue: str, expected: bool
) -> None:
    events: list[dict[str, Any]] = [{"queue": name, "reason": why} for name, why in history]
    assert is_cycle(events, queue) is expected


@pytest.mark.parametrize(
    "forged",
    ["text", [1, "x"], [{"queue": 5}], [{"queue": "q", "reason": "rejected", "count": -1}]],
)
def test_a_history_that_makes_no_sense_does_no_harm(forged: Any) -> None:
    where = place()
    source(where).dead_letters.send(letter(headers={"x-death": forged}), "rejected")
    event = headers_of(received(where))["x-death"][0]
    assert (event["queue"], event["reason"]) == ("q", "rejected")
    assert event["count"] in (1, 2)


@pytest.mark.parametrize(
    ("counts", "count"), [((3, 5), 4), ((None, None), 3), ((2,), 3), ((None, 7, 1), 4)]
)
def test_several_events_for_one_queue_and_reason_become_one(
    counts: tuple[int | None, ...], count: int
) -> None:
    where = place()
    about = {"queue": "q", "reason": "rejected"}
    same = [about if each is None else {**about, "count": each} for each in counts]
    other = {"queue": "q", "reason": "expired", "count": 9}
    forged = [same[0], other, *same[1:]]
    source(where).dead_letters.send(letter(headers={"x-death": forged}), "rejected")
    events = headers_of(received(where))["x-death"]
    assert [(each["reason"], each["count"]) for each in events] == [
        ("rejected", count),
        ("expired", 9),
    ]
