"""Routing: every queue once, through exchanges, cycles and alternates, and remembered rightly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.message import Message
from harebell.model.exchange.kind import Exchange
from harebell.model.exchange.topic import TopicExchange
from harebell.model.limits import ROUTE_CACHE_ENTRIES
from harebell.model.queue.contract import Queue
from harebell.model.vhost import VHost
from tests.unit.model.things import message, vhost, with_headers


def routed(where: VHost, exchange: str, key: str = "") -> list[str]:
    start = where.exchange(exchange)
    first = sorted(queue.name for queue in where.router.route(start, message(key=key)))
    again = sorted(queue.name for queue in where.router.route(start, message(key=key)))
    assert first == again, "a remembered route is the one that was found"
    return first


def test_the_default_exchange_goes_by_queue_name() -> None:
    where = vhost()
    where.declare_queue("q")
    assert routed(where, "", "q") == ["q"]
    assert routed(where, "", "other") == []


def test_a_queue_bound_twice_gets_one_copy() -> None:
    where = vhost()
    queue = where.declare_queue("q")
    where.bind("amq.topic", queue, "a.#")
    where.bind("amq.topic", queue, "#.b")
    assert routed(where, "amq.topic", "a.b") == ["q"]


def test_exchanges_lead_on_to_exchanges_and_cycles_end() -> None:
    where = vhost()
    for name in ("one", "two"):
        where.declare_exchange(name, "fanout")
    where.bind("one", where.exchange("two"), "")
    where.bind("two", where.exchange("one"), "")
    where.bind("two", where.declare_queue("q"), "")
    assert routed(where, "one") == ["q"]
    assert routed(where, "two") == ["q"]


def test_the_alternate_gets_what_nothing_matches_and_only_that() -> None:
    where = vhost()
    where.declare_exchange("main", "direct", arguments={"alternate-exchange": "spare"})
    where.declare_exchange("spare", "fanout")
    where.bind("main", where.declare_queue("wanted"), "k")
    where.bind("spare", where.declare_queue("lost"), "")
    assert routed(where, "main", "k") == ["wanted"]
    assert routed(where, "main", "other") == ["lost"]


def test_an_alternate_may_be_missing_the_default_one_or_a_cycle() -> None:
    where = vhost()
    where.declare_queue("q")
    where.declare_exchange("a", "direct", arguments={"alternate-exchange": "b"})
    assert routed(where, "a", "q") == []
    where.declare_exchange("b", "direct", arguments={"alternate-exchange": "a"})
    assert routed(where, "a", "q") == []
    where.declare_exchange("c", "direct", arguments={"alternate-exchange": ""})
    assert routed(where, "c", "q") == ["q"]
    assert routed(where, "c", "no such queue") == []


def test_headers_decide_and_are_never_remembered_by_key() -> None:
    where = vhost()
    where.bind("amq.headers", where.declare_queue("one"), "", {"n": 1})
    where.bind("amq.headers", where.declare_queue("two"), "", {"n": 2})
    start = where.exchange("amq.headers")
    for number, name in ((1, "one"), (2, "two")):
        found = where.router.route(start, with_headers({"n": number}, key="same"))
        assert [queue.name for queue in found] == [name]
    assert where.router.route(start, message(key="same")) == ()


def test_a_route_through_a_headers_exchange_is_not_remembered_at_its_start() -> None:
    where = vhost()
    where.declare_exchange("front", "fanout")
    where.bind("front", where.exchange("amq.headers"), "")
    where.bind("amq.headers", where.declare_queue("one"), "", {"n": 1})
    start = where.exchange("front")
    assert where.router.route(start, message()) == ()
    found = where.router.route(start, with_headers({"n": 1}))
    assert [queue.name for queue in found] == ["one"]


def test_only_so_many_keys_are_remembered() -> None:
    where = vhost()
    where.bind("amq.topic", where.declare_queue("q"), "#")
    start = where.exchange("amq.topic")
    for number in range(ROUTE_CACHE_ENTRIES + 10):
        where.router.route(start, message(key=f"k{number}"))
        assert len(start.routes) + len(start.older_routes) <= ROUTE_CACHE_ENTRIES
    assert routed(where, "amq.topic", "k3") == ["q"]


class WatchedExchange(TopicExchange):
    """Notes the keys that it matches."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.matched: list[str] = []

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        self.matched.append(message.routing_key)
        return super().match(message, headers)


def test_keys_that_are_in_use_stay_remembered_among_any_number_of_others() -> None:
    where = vhost()
    start = where.exchanges["amq.topic"] = WatchedExchange("amq.topic")
    where.bind("amq.topic", where.declare_queue("q"), "#")
    for number in range(5 * ROUTE_CACHE_ENTRIES):
        where.router.route(start, message(key=f"k{number}"))
        if number % 1000 == 0:
            assert [each.name for each in where.router.route(start, message(key="used"))] == ["q"]
    assert start.matched.count("used") == 1
    where.bind("amq.topic", where.declare_queue("late"), "used")
    assert sorted(routed(where, "amq.topic", "used")) == ["late", "q"]


steps = st.lists(
    st.tuples(
        st.sampled_from(["bind", "unbind", "drop", "declare"]),
        st.sampled_from(["q0", "q1", "q2"]),
        st.sampled_from(["a", "b", "a.*", "#"]),
    ),
    max_size=25,
)


@settings(max_examples=80, deadline=None)
@given(steps)
def test_remembered_routes_are_never_older_than_the_bindings(
    script: list[tuple[str, str, str]],
) -> None:
    where = vhost()
    bound: set[tuple[str, str]] = set()
    for step, name, pattern in script:
        if step == "declare":
            where.declare_queue(name)
        elif name not in where.queues:
            continue
        elif step == "bind":
            where.bind("amq.topic", where.queues[name], pattern)
            bound.add((name, pattern))
        elif step == "unbind":
            where.unbind("amq.topic", where.queues[name], pattern)
            bound.discard((name, pattern))
        else:
            where.delete_queue(name)
            bound = {each for each in bound if each[0] != name}
        for key, fitting in (("a", {"a", "#"}), ("a.b", {"a.*", "#"}), ("b", {"b", "#"})):
            expected = sorted({q for q, p in bound if p in fitting})
            assert routed(where, "amq.topic", key) == expected


def routed_all(where: VHost, exchange: str, *keys: str) -> list[str]:
    first, *further = keys
    queues = where.router.route_keys(where.exchange(exchange), message(key=first), further)
    return [queue.name for queue in queues]


def test_several_keys_lead_to_every_queue_once() -> None:
    where = vhost()
    for key in ("a", "b"):
        queue = where.declare_queue(key)
        where.bind("amq.direct", queue, key)
        where.bind("amq.direct", queue, "both")
    assert sorted(routed_all(where, "amq.direct", "a", "both", "c")) == ["a", "b"]
    assert routed_all(where, "", "c", "b") == ["b"]
    assert routed(where, "amq.direct", "a") == ["a"], "nothing of it is remembered for one key"


def test_the_alternate_gets_what_none_of_several_keys_finds_a_way_for() -> None:
    where = vhost()
    where.declare_exchange("main", "direct", arguments={"alternate-exchange": "amq.fanout"})
    where.bind("main", where.declare_queue("q"), "a")
    where.bind("amq.fanout", where.declare_queue("rest"), "")
    assert routed_all(where, "main", "a", "b") == ["q"]
    assert routed_all(where, "main", "b", "c") == ["rest"]


def test_a_kind_that_chooses_at_random_chooses_once_for_all_keys() -> None:
    where = vhost()
    where.declare_exchange("dice", "x-random")
    for name in ("a", "b", "c"):
        where.bind("dice", where.declare_queue(name), "")
    assert len(routed_all(where, "dice", "k", "l", "m", "n", "o", "p")) == 1
