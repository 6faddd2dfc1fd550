"""Bindings with a selector: only what it selects takes them, in exchanges of every type."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.slices import at_once
from harebell.front.convert import EDITOR
from harebell.model.binding import Binding
from harebell.model.exchange.gate import Gate, opened
from harebell.model.filter.errors import FilterError
from harebell.model.rehearsal import route_of
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import rest

SELECTOR = "x-filter-jms-selector"
RED = {SELECTOR: "color = 'red'"}
TYPES: list[tuple[str, dict[str, Any]]] = [
    ("direct", {}),
    ("fanout", {}),
    ("topic", {}),
    ("headers", {}),
    ("x-recent-history", {}),
    ("x-message-deduplication", {"x-cache-size": 5}),
    ("x-delayed-message", {"x-delayed-type": "topic"}),
    ("direct", {"qpid.msg_sequence": 1}),
]
ALL = pytest.mark.parametrize(("kind", "arguments"), TYPES, ids=str)
CHOOSING: list[tuple[str, dict[str, Any], str]] = [
    ("x-random", {}, ""),
    ("x-local-random", {}, ""),
    ("x-modulus-hash", {}, ""),
    ("x-consistent-hash", {}, "1"),
    ("x-delayed-message", {"x-delayed-type": "x-random"}, ""),
]


class Place:
    """A vhost with one exchange."""

    def __init__(self, kind: str = "direct", **arguments: Any) -> None:
        self.host = VHost("/", MemoryStore(Gauge()), EDITOR)
        self.exchange = self.host.declare_exchange("x", kind, arguments=arguments)

    def queue(self, name: str, key: str = "k", **arguments: Any) -> Any:
        queue = self.host.declare_queue(name)
        self.host.bind("x", queue, key, arguments)
        return queue

    def publish(self, body: bytes, color: str = "", key: str = "k", **headers: Any) -> None:
        self.host.router.send(self.exchange, letter(body, color, key, **headers))


def letter(body: bytes = b"", color: str = "", key: str = "k", **headers: Any) -> Message:
    return EDITOR.composed("x", key, body, {"headers": {"color": color, **headers}})


@ALL
def test_a_message_that_the_selector_does_not_select_is_not_routed(
    kind: str, arguments: dict[str, Any]
) -> None:
    place = Place(kind, **arguments)
    every, red, blue = (
        place.queue("every"),
        place.queue("red", **RED),
        place.queue("blue", **{SELECTOR: "color = 'blue'"}),
    )
    # Twice each: what was routed once is not remembered for the next.
    for number, color in enumerate(("red", "blue", "red", "green", "blue")):
        place.publish(b"%d" % number, color)
    assert rest(every) == [b"0", b"1", b"2", b"3", b"4"]
    assert rest(red) == [b"0", b"2"]
    assert rest(blue) == [b"1", b"4"]


@ALL
def test_a_queue_that_is_bound_twice_gets_what_either_selects_once(
    kind: str, arguments: dict[str, Any]
) -> None:
    place = Place(kind, **arguments)
    queue = place.queue("q", **RED)
    place.host.bind("x", queue, "k", {SELECTOR: "n > 1"})
    for number, color in enumerate(("red", "blue", "red", "blue")):
        place.publish(b"%d" % number, color, n=number)
    assert rest(queue) == [b"0", b"2", b"3"]


@ALL
def test_without_its_binding_a_selector_has_no_effect(kind: str, arguments: dict[str, Any]) -> None:
    place = Place(kind, **arguments)
    queue = place.queue("q", **RED)
    assert not place.host.unbind("x", queue, "k", {})
    assert place.host.unbind("x", queue, "k", RED)
    place.publish(b"0", "red")
    place.host.bind("x", queue, "k")
    place.publish(b"1", "blue")
    assert rest(queue)[-1:] == [b"1"]
    assert not place.exchange.gates
    assert place.exchange.special is (place.exchange.tap is not None)


def test_an_equal_binding_is_there_once() -> None:
    place = Place()
    queue = place.queue("q", **RED)
    place.host.bind("x", queue, "k", dict(RED))
    assert place.exchange.gates == 1
    place.host.unbind("x", queue, "k", dict(RED))
    assert not place.exchange.bindings


def test_a_selector_leads_to_an_exchange_too() -> None:
    place = Place("topic")
    behind = place.host.declare_exchange("behind", "fanout")
    queue = place.host.declare_queue("q")
    place.host.bind("behind", queue, "")
    place.host.bind("x", behind, "#", RED)
    for number, color in enumerate(("red", "blue", "red")):
        place.publish(b"%d" % number, color)
    assert rest(queue) == [b"0", b"2"]


def test_what_no_selector_selects_goes_to_the_alternate_exchange() -> None:
    place = Place(**{"alternate-exchange": "other"})
    place.host.declare_exchange("other", "fanout")
    lost = place.host.declare_queue("lost")
    place.host.bind("other", lost, "")
    queue = place.queue("q", **RED)
    for number, color in enumerate(("red", "blue", "red", "blue")):
        place.publish(b"%d" % number, color)
    assert (rest(queue), rest(lost)) == ([b"0", b"2"], [b"1", b"3"])


def test_routes_of_keys_without_selectors_are_remembered() -> None:
    place = Place()
    place.queue("q", **RED)
    plain = place.queue("plain", "other")
    router = place.host.router
    for key in ("k", "other"):
        router.route(place.exchange, letter(color="red", key=key))
    assert router.same_for(place.exchange, "other")
    assert not router.same_for(place.exchange, "k")
    assert router.route(place.exchange, letter(key="other")) == (plain,)


def test_each_routing_key_of_a_message_is_tested() -> None:
    place = Place("topic")
    queue = place.queue("q", "#", **{SELECTOR: "message.routing_key = 'b'"})
    first = letter(key="a")
    assert place.host.router.route(place.exchange, first) == ()
    assert place.host.router.route_keys(place.exchange, first, ["b"]) == (queue,)


def test_a_selector_sees_the_number_that_the_exchange_gives() -> None:
    place = Place(**{"qpid.msg_sequence": 1})
    queue = place.queue("q", **{SELECTOR: "[qpid.msg_sequence] > 1 AND [qpid.msg_sequence] < 4"})
    for number in range(1, 6):
        place.publish(b"%d" % number)
    assert rest(queue) == [b"2", b"3"]


def test_a_selector_tests_properties_and_bodies() -> None:
    place = Place()
    queue = place.queue("q", **{SELECTOR: "JMSPriority > 4 AND body.total > 10"})
    for number, (priority, total) in enumerate(((9, 20), (1, 20), (9, 1))):
        body = b'{"total": %d, "n": %d}' % (total, number)
        one = EDITOR.composed("x", "k", body, {"priority": priority})
        place.host.router.send(place.exchange, one)
    assert rest(queue) == [b'{"total": 20, "n": 0}']


@pytest.mark.parametrize(
    ("kind", "arguments"), [("x-recent-history", {}), ("topic", {"qpid.ive": 1})], ids=str
)
def test_a_new_binding_gets_what_was_kept_if_it_selects_it(
    kind: str, arguments: dict[str, Any]
) -> None:
    place = Place(kind, **arguments)
    for number, color in enumerate(("red", "blue", "red")):
        place.publish(b"%d" % number, color, key=f"k{number}")
    assert rest(place.queue("q", "#", **RED)) == [b"0", b"2"]


@pytest.mark.parametrize("how", ["all-with-x", "any-with-x", "all", "any"])
def test_a_headers_exchange_does_not_compare_the_selector(how: str) -> None:
    place = Place("headers")
    queue = place.queue("q", "", **RED, **{"x-match": how, "n": 1})
    place.publish(b"0", "red", n=1)
    place.publish(b"1", "blue", n=1)
    place.publish(b"2", "red", n=2)
    place.publish(b"3", "blue", n=2, **RED)
    assert rest(queue) == [b"0"]


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ("color = = 'red'", "the selector is wrong at character 9: a column or a value is missing"),
        ("a RLIKE '(a|b'", "character"),
        (5, "the selector is no text, but of type"),
        (None, "the selector is no text, but of type"),
    ],
)
def test_a_wrong_selector_is_refused_and_nothing_is_bound(selector: Any, text: str) -> None:
    place = Place()
    with pytest.raises(Refusal, match=text) as caught:
        place.queue("q", **{SELECTOR: selector})
    assert caught.value.kind is ErrorKind.INVALID_ARGUMENT
    assert "of the binding" in str(caught.value)
    assert not place.exchange.bindings
    assert not place.host.queues["q"].bound


@pytest.mark.parametrize(("kind", "arguments", "key"), CHOOSING, ids=str)
def test_exchanges_that_choose_a_binding_refuse_selectors(
    kind: str, arguments: dict[str, Any], key: str
) -> None:
    place = Place(kind, **arguments)
    with pytest.raises(Refusal, match="chooses one binding") as caught:
        place.queue("q", key, **RED)
    assert caught.value.kind is ErrorKind.PRECONDITION_FAILED
    place.host.bind("x", place.host.queues["q"], key, {SELECTOR: " "})
    place.publish(b"0", "blue")
    assert rest(place.host.queues["q"]) == [b"0"]


@pytest.mark.parametrize("selector", ["color =", 5, " "])
def test_a_stored_binding_whose_argument_is_no_selector_selects_everything(selector: Any) -> None:
    place = Place()
    queue = place.host.declare_queue("q")
    place.host.attach(Binding(place.exchange, queue, "k", {SELECTOR: selector}))
    place.publish(b"0", "blue")
    assert rest(queue) == [b"0"]


class Slow:
    """A selector, and its condition, that takes too long for any message."""

    def __init__(self) -> None:
        self.condition = self

    def units(self, message: Message) -> int:
        return 1

    def test(self, message: Message, looker: Any) -> int:
        raise FilterError("too long")


def test_a_message_that_takes_too_long_to_test_is_routed() -> None:
    place = Place()
    queue = place.queue("q", **RED)
    (binding,) = place.exchange.bindings
    slow: Any = Slow()
    assert opened([Gate(queue, slow, binding.leads_to.tests)], letter()) == [queue]


def test_a_test_is_charged_to_the_publisher() -> None:
    place = Place()
    place.queue("one", **RED)
    place.queue("two", **RED)
    work = place.host.router.work
    before = work.spent
    place.publish(b"0", "blue")
    alike = work.spent - before
    place.queue("three", **{SELECTOR: "color = 'green' AND n IN (1, 2, 3)"})
    before = work.spent
    place.publish(b"0", "blue")
    assert work.spent - before > alike > 0


def test_a_rehearsal_tells_the_bindings_that_select_the_message() -> None:
    place = Place("topic", **{"alternate-exchange": "other"})
    place.host.declare_exchange("other", "fanout")
    queue = place.queue("q", "#", **RED)
    found = []
    for color in ("red", "blue"):
        one = letter(color=color)
        route = at_once(route_of(place.host.router, place.exchange, (one,), EDITOR.headers_of(one)))
        first = route.steps[0]
        found.append((route.queues, [each.arguments for each in first.bindings], first.alternate))
    assert found == [([queue], [RED], None), ([], [], "other")]


def test_who_deletes_the_queue_removes_its_gate() -> None:
    place = Place("topic")
    place.queue("q", "#", **RED)
    place.host.delete_queue("q")
    assert (place.exchange.gates, place.exchange.special) == (0, False)
    place.publish(b"0", "red")
