"""A vhost's policies reach what lives and what is declared later, and outlive the process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from harebell.base.gauge import Gauge
from harebell.base.work import Step, Work
from harebell.model.limits import WORK_SLICE_UNITS
from harebell.model.queue.stream import StreamQueue
from harebell.model.queue.tracking import Tracking
from harebell.model.settings.policy import Policy
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.test_definitions import RestartedStore
from tests.unit.model.things import Taker, message, vhost


def policy(definition: dict[str, Any], name: str = "p", apply_to: str = "all") -> Policy:
    return Policy(name, "^q", apply_to, 0, definition)


def refuse_one(host: Any) -> None:
    """A message is published to q1 and rejected by its consumer."""
    queue = host.queue("q1")
    taker = Taker(queue)
    queue.add_consumer(taker)
    queue.publish(message(b"m", "q1"))
    queue.reject(taker.got[-1][1])
    host.remove_consumer(taker)


def test_a_policy_gives_a_living_queue_a_dead_letter_exchange_until_it_goes() -> None:
    host = vhost()
    host.declare_queue("q1")
    dead = host.declare_queue("dead")
    host.policies.put(policy({"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}))
    refuse_one(host)
    assert dead.ready_count() == 1
    assert host.policies.delete("p")
    refuse_one(host)
    assert dead.ready_count() == 1


def test_an_argument_goes_before_a_policy() -> None:
    host = vhost()
    host.policies.put(policy({"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}))
    dead, mine = host.declare_queue("dead"), host.declare_queue("mine")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "mine"}
    host.declare_queue("q1", arguments=arguments)
    refuse_one(host)
    assert (dead.ready_count(), mine.ready_count()) == (0, 1)


def test_a_policy_gives_an_exchange_its_alternate_until_it_goes() -> None:
    host = vhost()
    living = host.declare_exchange("q-living", "direct")
    host.policies.put(policy({"alternate-exchange": "amq.fanout"}))
    later = host.declare_exchange("q-later", "direct")
    own = host.declare_exchange("q-own", "direct", arguments={"alternate-exchange": "mine"})
    assert (living.alternate, later.alternate, own.alternate) == ("amq.fanout",) * 2 + ("mine",)
    queue = host.declare_queue("all")
    host.bind("amq.fanout", queue, "")
    assert host.router.route(living, message(key="k", exchange="q-living")) == (queue,)
    host.policies.delete("p")
    assert (living.alternate, later.alternate, own.alternate) == (None, None, "mine")
    assert host.router.route(living, message(key="k", exchange="q-living")) == ()


def test_a_policy_changes_the_delivery_limit_of_a_quorum_queue_that_lives() -> None:
    host = vhost()
    queue = host.declare_queue("q1", durable=True, arguments={"x-queue-type": "quorum"})
    queue.publish(message(b"m"))
    host.policies.put(policy({"delivery-limit": 1}, apply_to="quorum_queues"))
    for left in (1, 0):
        found = queue.get()
        assert found is not None
        queue.requeue(found[1])
        assert queue.ready_count() == left


def test_a_queue_is_told_its_settings_when_it_comes_and_whenever_a_policy_changes() -> None:
    told: list[dict[str, Any]] = []

    class Queue(StreamQueue):
        def configure(self, settings: Any) -> None:
            told.append(dict(settings))

    host = vhost()
    store = MemoryStore(Gauge())
    tracking = Tracking("/", "q1", store.definitions, store.commit, {})
    log = store.open_log("q1", durable=True)
    given = {"x-queue-type": "stream", "x-max-age": "1h"}
    host.add_queue(Queue("q1", "/", log, store.commit, tracking, 1, durable=True, arguments=given))
    host.policies.put(policy({"max-length-bytes": 5}, apply_to="streams"))
    host.policies.delete("p")
    assert told == [{"max-age": "1h"}, {"max-age": "1h", "max-length-bytes": 5}, {"max-age": "1h"}]


def test_policies_are_part_of_the_commit_that_other_definitions_are_part_of() -> None:
    for operator in (False, True):
        host = vhost()
        host.policies.put(policy({"max-length": 5}), operator=operator)
        assert host.recorder.ticket == 1
        host.recorder.ticket = 0
        host.policies.delete("p", operator=operator)
        assert host.recorder.ticket == 1


def test_deleting_a_policy_that_is_not_there_says_so() -> None:
    host = vhost()
    assert not host.policies.delete("p")
    assert not host.policies.delete("p", operator=True)


def test_policies_come_back_after_a_restart_and_apply_to_what_came_back() -> None:
    store = RestartedStore()
    host = store.broker().add_vhost("v")
    host.declare_exchange("q", "direct", durable=True)
    kept = policy({"alternate-exchange": "a", "max-length": 5})
    operator = policy({"max-length": 3}, "o", "queues")
    host.policies.put(kept)
    host.policies.put(policy({"expires": 1}, "gone"))
    host.policies.put(operator, operator=True)
    host.policies.delete("gone")
    host = store.broker().vhosts["v"]
    assert host.policies.policies == {"p": kept}
    assert host.policies.operator_policies == {"o": operator}
    assert host.exchanges["q"].alternate == "a"
    queue = host.declare_queue("q1")
    assert host.policies.effective(queue) == {"alternate-exchange": "a", "max-length": 3}
    assert host.policies.policy_of(queue) == kept
    assert host.policies.policy_of(queue, operator=True) == operator


class Turns:
    """Turns of a vhost: what is left of a long operation waits for the next one."""

    def __init__(self, host: VHost) -> None:
        self._rest: list[Step] = []
        self._work = host.context.timers.work = Work()
        self._work.later = self._rest.append

    def turn(self, act: Callable[[], object]) -> int:
        """Do something in a turn; how many units it took."""
        self._work.begin(WORK_SLICE_UNITS)
        act()
        return self._work.end()

    def finish(self) -> int:
        """Do the rest; how many turns it took."""
        count = 0
        while self._rest:
            self.turn(lambda: self._rest[0]() and self._rest.pop(0))
            count += 1
        return count


def test_a_turn_applies_policies_to_fewer_objects_the_more_patterns_are_tried_for_each() -> None:
    host = vhost()
    exchanges = [host.declare_exchange(f"q{number}", "fanout") for number in range(200)]
    turns = Turns(host)

    def reached(alternate: str) -> int:
        """Set a policy; to how many exchanges the first turn has applied it."""
        last = policy({"alternate-exchange": alternate}, name="last")
        turns.turn(lambda: host.policies.put(last))
        count = sum(each.alternate == alternate for each in exchanges)
        turns.finish()
        assert {each.alternate for each in exchanges} == {alternate}
        return count

    few = reached("one")
    for number in range(50):
        host.policies.put(Policy(f"p{number}", f"^other-{number}", "all", 0, {"max-length": 1}))
    turns.finish()
    assert 0 < few == reached("two") < len(exchanges)
    for number in range(50):
        host.policies.put(Policy(f"p{number}", "[a-z]{3}", "all", 0, {"max-length": 1}))
    turns.finish()
    assert 0 < reached("three") < few


def test_while_policies_change_all_objects_are_reached_in_their_turn() -> None:
    host = vhost()
    exchanges = [host.declare_exchange(f"q{number}", "fanout") for number in range(400)]
    turns = Turns(host)
    turns.turn(lambda: host.policies.put(policy({"alternate-exchange": "first"})))
    count = 0
    while any(each.alternate is None for each in exchanges):
        count += 1
        assert count < 100, "the last ones wait for the end of the changes"
        turns.turn(partial(host.policies.put, policy({"alternate-exchange": f"a{count}"})))
        turns.turn(lambda: turns._rest[0]())
    turns.finish()
    assert {each.alternate for each in exchanges} == {f"a{count}"}


def test_policies_that_are_held_are_applied_once_by_the_last_to_release_them() -> None:
    host = vhost()
    exchange = host.declare_exchange("q", "fanout")
    host.policies.hold()
    host.policies.hold()
    host.policies.put(policy({"alternate-exchange": "a"}))
    later = host.declare_exchange("q-later", "fanout")
    host.policies.release()
    assert (exchange.alternate, later.alternate) == (None, "a")
    host.policies.release()
    assert exchange.alternate == "a"
    host.policies.put(policy({"alternate-exchange": "b"}))
    assert exchange.alternate == "b"
