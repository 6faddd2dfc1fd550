"""Exchanges that number messages, and that send the newest of each key to new bindings."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.bcc import hidden
from harebell.base.errors import Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import FAMILY_FILE, Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.definitions import restored_exchanges
from harebell.model.exchange import tap as taps
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import message, rest

TYPES = pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
NUMBERED = {"qpid.msg_sequence": 1}
INITIAL = {"qpid.ive": 1}


class Place:
    """A vhost with one exchange."""

    def __init__(
        self, kind: str = "direct", store: MemoryStore | None = None, **options: Any
    ) -> None:
        self.store = store or MemoryStore(Gauge())
        self.host = VHost("/", self.store, EDITOR)
        self.exchange = self.host.declare_exchange("x", kind, **options)

    def queue(self, name: str, key: str = "k", **arguments: Any) -> Any:
        queue = self.host.declare_queue(name)
        self.host.bind("x", queue, key, arguments)
        return queue

    def publish(self, body: bytes = b"", key: str = "k", **headers: Any) -> Message:
        one = message(body, key, "x")
        if headers:
            one = EDITOR.composed("x", key, body, {"headers": headers})
        self.host.router.send(self.exchange, one)
        return one


def numbers(queue: Any) -> list[int]:
    found = []
    while (one := queue.get()) is not None:
        found.append(EDITOR.headers_of(one[0])["qpid.msg_sequence"])
        queue.settle(one[1])
    return found


@TYPES
def test_each_message_has_the_next_number_in_every_queue(kind: str) -> None:
    place = Place(kind, arguments=NUMBERED)
    queues = [place.queue(name) for name in ("one", "two")]
    for _ in range(3):
        place.publish()
    assert [numbers(queue) for queue in queues] == [[1, 2, 3], [1, 2, 3]]


def test_a_number_is_taken_also_when_no_queue_gets_the_message() -> None:
    place = Place(arguments=NUMBERED)
    place.publish()
    queue = place.queue("q")
    place.publish()
    assert numbers(queue) == [2]


def test_other_headers_and_properties_stay() -> None:
    place = Place(arguments=NUMBERED)
    queue = place.queue("q")
    raw = EDITOR.composed("x", "k", b"", {"headers": {"a": 1}, "delivery_mode": 2, "priority": 3})
    raw.due = 77
    place.host.router.send(place.exchange, raw)
    got = queue.get()[0]
    assert EDITOR.headers_of(got) == {"a": 1, "qpid.msg_sequence": 1}
    assert (got.delivery_mode, got.priority, got.due, got.has_headers) == (2, 3, 77, True)


def test_files_keep_their_class_and_hidden_keys_stay_hidden() -> None:
    place = Place(arguments=NUMBERED)
    queue = place.queue("q")
    place.host.router.send(
        place.exchange, Message("x", "k", Properties(b"\0\0", family=FAMILY_FILE), b"")
    )
    blind = hidden(EDITOR.composed("x", "k", b"", {"headers": {"BCC": ["b"]}}))
    place.host.router.send(place.exchange, blind)
    assert queue.get()[0].family == FAMILY_FILE
    got = queue.get()[0]
    assert got.family == blind.family
    assert EDITOR.headers_of(got) == {"qpid.msg_sequence": 2}


class LastingStore(MemoryStore):
    """A store in memory whose logs are there again after a restart."""

    __slots__ = ("logs",)

    def __init__(self) -> None:
        super().__init__(Gauge())
        self.logs: dict[str, Any] = {}

    def open_log(self, identity: str, **how: Any) -> Any:
        if identity not in self.logs:
            self.logs[identity] = super().open_log(identity, **how)
        return self.logs[identity]


def restarted(place: Place) -> Place:
    """The same exchange after a restart, over the same store."""
    again = Place.__new__(Place)
    again.store, again.host = place.store, VHost("/", place.store, EDITOR)
    for _, exchange in restored_exchanges(place.store):
        again.host.add_exchange(exchange)
    again.exchange = again.host.exchange("x")
    return again


def test_numbers_of_a_durable_exchange_go_on_after_an_orderly_end() -> None:
    place = Place(store=LastingStore(), durable=True, arguments=NUMBERED)
    for _ in range(5):
        place.publish()
    place.exchange.tap.end()
    again = restarted(place)
    queue = again.queue("q")
    again.publish()
    assert numbers(queue) == [6]


def test_no_number_is_there_twice_after_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taps, "SEQUENCE_AHEAD_NUMBERS", 10)
    place = Place(store=LastingStore(), durable=True, arguments=NUMBERED)
    for _ in range(25):
        place.publish()
    assert place.store.commit.joint, "the number ahead is on disk with the message, or neither is"
    again = restarted(place)
    queue = again.queue("q")
    again.publish()
    (number,) = numbers(queue)
    assert 25 < number <= 25 + 11


def test_an_exchange_that_is_declared_anew_begins_with_1() -> None:
    place = Place(store=LastingStore(), durable=True, arguments=NUMBERED)
    place.publish()
    place.host.delete_exchange("x")
    again = Place(store=place.store, durable=True, arguments=NUMBERED)
    queue = again.queue("q")
    again.publish()
    assert numbers(queue) == [1]


def test_a_new_binding_gets_the_newest_message_of_each_key_that_it_matches() -> None:
    place = Place("topic", arguments=INITIAL)
    for body, key in ((b"1", "a.x"), (b"2", "b.x"), (b"3", "a.y"), (b"4", "a.x")):
        place.publish(body, key)
    assert rest(place.queue("a", "a.*")) == [b"3", b"4"]
    assert rest(place.queue("b", "b.#")) == [b"2"]
    assert rest(place.queue("all", "#")) == [b"2", b"3", b"4"]


def test_an_equal_binding_gets_nothing_again() -> None:
    place = Place(arguments=INITIAL)
    place.publish(b"1")
    queue = place.queue("q")
    place.queue("q")
    assert rest(queue) == [b"1"]


def test_headers_decide_what_a_new_binding_gets() -> None:
    place = Place("headers", arguments=INITIAL)
    place.publish(b"1", "one", color="red")
    place.publish(b"2", "two", color="blue")
    assert rest(place.queue("q", "", color="red")) == [b"1"]


def test_a_message_that_every_queue_refuses_is_not_kept() -> None:
    place = Place(arguments=INITIAL)
    full = place.host.declare_queue(
        "full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"}
    )
    place.host.bind("x", full, "k")
    place.publish(b"1")
    assert len(place.exchange.tap.values) == 0
    assert rest(place.queue("q")) == []


def test_rows_of_a_batch_are_kept_with_its_commit() -> None:
    values = Place(arguments=INITIAL).exchange.tap.values
    values.stage(message(b"1", "a", "x"))
    values.end_batch(False)
    assert len(values) == 0
    values.stage(message(b"2", "a", "x"))
    values.stage(message(b"3", "a", "x"))
    assert len(values) == 0
    values.end_batch(True)
    assert len(values) == 1


def test_the_number_of_keys_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taps, "INITIAL_VALUES_KEYS", 2)
    place = Place("topic", arguments=INITIAL)
    for key in ("a", "b", "a", "c"):
        place.publish(key.encode(), key)
    assert rest(place.queue("q", "#")) == [b"a", b"c"]


def test_both_together_keep_the_number() -> None:
    place = Place(arguments={**NUMBERED, **INITIAL})
    place.publish()
    place.publish()
    assert numbers(place.queue("q")) == [2]


def test_an_exchange_behind_another_one_numbers_what_comes_to_it() -> None:
    place = Place(arguments=NUMBERED)
    place.host.declare_exchange("first", "fanout")
    place.host.bind("first", place.exchange, "")
    queue = place.queue("q")
    for _ in range(2):
        place.host.router.send(place.host.exchange("first"), message(b"", "k", "first"))
    assert numbers(queue) == [1, 2]


def test_types_that_keep_messages_themselves_refuse_initial_values() -> None:
    with pytest.raises(Refusal, match="type x-recent-history keeps messages itself"):
        Place("x-recent-history", arguments=INITIAL)


def test_a_deleted_exchange_keeps_nothing() -> None:
    place = Place(arguments=INITIAL)
    place.publish(b"1")
    values = place.exchange.tap.values
    place.host.delete_exchange("x")
    values.keep(message(b"2", "k", "x"))
    assert len(values) == 0
