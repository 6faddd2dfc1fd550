"""Queues and exchanges that go by themselves, with more bindings than one turn has time for."""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.work import Step
from harebell.model.events import EVENT_EXCHANGE
from harebell.model.vhost import VHost
from tests.unit.model.things import Taker, message, rest, vhost

OWNER = object()
MANY = 500


class Turns:
    """Does what is put off slice by slice, each of so many units."""

    def __init__(self, where: VHost, units: int = 200) -> None:
        self._work = where.context.timers.work
        self._work.later = self._later
        self._units = units
        self._steps: list[Step] = []

    def _later(self, step: Step) -> None:
        self._steps.append(step)

    def next(self) -> bool:
        """A slice; False when nothing waits."""
        if not self._steps:
            return False
        self._work.begin(self._units)
        if self._steps[0]():
            del self._steps[0]
        self._work.end()
        return True

    def all(self) -> int:
        """Slice after slice; how many they were."""
        count = 0
        while self.next():
            count += 1
        return count


def exclusive(where: VHost, count: int) -> None:
    for number in range(count):
        where.declare_queue(f"x{number}", exclusive=True, owner=OWNER)


def test_a_few_queues_of_an_owner_go_at_once() -> None:
    where = vhost()
    turns = Turns(where)
    exclusive(where, 10)
    where.drop_owned(OWNER)
    assert not where.queues
    assert turns.all() == 0


def test_many_queues_of_an_owner_go_in_slices_and_their_names_are_free_at_once() -> None:
    where = vhost()
    turns = Turns(where)
    exclusive(where, MANY)
    old = list(where.queues.values())
    where.drop_owned(OWNER)
    assert not where.queues
    assert turns.next()
    assert 0 < sum(queue.deleted for queue in old) < MANY
    other = object()
    again = where.declare_queue("x499", exclusive=True, owner=other)
    assert turns.all() > 10
    assert all(queue.deleted for queue in old)
    assert where.queues == {"x499": again}
    assert not again.deleted
    assert where.owned_by(other) == [again]
    assert where.owned_by(OWNER) == []


def test_bindings_of_a_new_queue_stay_when_the_old_one_of_that_name_goes() -> None:
    where = vhost()
    turns = Turns(where)
    exclusive(where, 1)
    for number in range(MANY):
        where.bind("amq.direct", where.queues["x0"], f"k{number}")
    where.drop_owned(OWNER)
    fresh = where.declare_queue("x0")
    where.bind("amq.direct", fresh, "k3")
    turns.all()
    assert [binding.destination for binding in where.bindings()] == [fresh]
    for queue in where.router.route(where.exchanges["amq.direct"], message(b"m", "k3")):
        queue.publish(message(b"m", "k3"))
    assert rest(fresh) == [b"m"]


def test_an_owner_is_another_when_a_queue_is_given_away() -> None:
    where = vhost()
    exclusive(where, 2)
    where.give(where.queues["x0"], None)
    where.give(where.queues["x1"], "session")
    assert where.owned_by(OWNER) == []
    assert where.owned_by("session") == [where.queues["x1"]]
    where.drop_owned(OWNER)
    assert set(where.queues) == {"x0", "x1"}
    where.drop_owned("session")
    assert set(where.queues) == {"x0"}


def test_an_auto_delete_queue_with_many_bindings_is_there_until_they_are_gone() -> None:
    where = vhost()
    turns = Turns(where)
    queue = where.declare_queue("q", auto_delete=True, durable=True)
    taker = Taker(queue)
    queue.add_consumer(taker)
    where.declare_exchange("source", "topic", auto_delete=True)
    for number in range(MANY):
        where.bind("source", queue, f"k{number}")
    where.remove_consumer(taker)
    turns.next()
    assert where.queues["q"] is queue
    assert 0 < len(where.exchanges["source"].bindings) < MANY
    turns.all()
    assert "q" not in where.queues
    assert "source" not in where.exchanges


def test_an_exchange_that_goes_with_its_last_binding_may_have_many_to_it() -> None:
    where = vhost()
    turns = Turns(where)
    middle = where.declare_exchange("middle", "fanout", auto_delete=True)
    where.bind("middle", where.declare_queue("q"), "")
    for number in range(MANY):
        where.bind("amq.direct", middle, f"k{number}")
    where.unbind("middle", where.queues["q"], "")
    assert "middle" in where.exchanges
    turns.all()
    assert "middle" not in where.exchanges
    assert not where.exchanges["amq.direct"].bindings


def test_a_later_removal_is_attributed_to_the_user_who_caused_it() -> None:
    where = vhost()
    turns = Turns(where)
    events = where.recorder.events
    where.add_watcher(EVENT_EXCHANGE)
    events.attach(where.router)
    seen = where.declare_queue("seen")
    where.bind(EVENT_EXCHANGE, seen, "queue.deleted")
    exclusive(where, MANY)
    actors: list[str] = []
    note: Callable[..., None] = events.note

    def noted(key: str, facts: dict[str, object]) -> None:
        actors.append(events.actor)

    events.note = noted  # type: ignore[method-assign,assignment]
    events.actor = "ann"
    where.drop_owned(OWNER)
    events.actor = "bob"
    turns.all()
    events.note = note  # type: ignore[method-assign]
    assert actors == ["ann"] * MANY
    assert events.actor == "bob"
