"""Full queues that drop into full queues: everything arrives, and no turn of the loop lasts."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.timers import Timers
from harebell.front.convert import EDITOR
from harebell.model.dead_letter import DeadLetters
from harebell.model.limits import (
    CHAINED_PER_TURN,
    LETTER_UNITS,
    LETTERS_PER_TURN,
    REFUSED_PER_TURN,
)
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import message, rest

MAX = LETTERS_PER_TURN + CHAINED_PER_TURN
"""Letters of one queue and what follows from them, in one turn."""
KINDS: list[dict[str, Any]] = [{}, {"x-max-priority": 2}, {"x-queue-type": "quorum"}]


class Net:
    """Queues that drop into each other.

    Args:
        monkeypatch: lets it count what is sent.

    Attributes:
        sent: the letters of this turn.
        turns: how many letters each turn sent that sent any, the first one being the publish.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        self.timers = Timers(self.clock)
        self.host = VHost("/", MemoryStore(Gauge()), EDITOR, self.clock, timers=self.timers)
        self.sent = 0
        self.turns: list[int] = []
        send = DeadLetters.send

        def counted(letters: DeadLetters, *args: Any) -> int:
            self.sent += 1
            return send(letters, *args)

        monkeypatch.setattr(DeadLetters, "send", counted)

    def mesh(self, count: int, arguments: dict[str, Any]) -> list[Any]:
        """Queues that all drop into all others, full with one message each."""
        self.host.declare_exchange("mesh", "fanout")
        queues = []
        for number in range(count):
            given = {"x-max-length": 1, "x-dead-letter-exchange": "mesh", **arguments}
            queues.append(self.host.declare_queue(f"q{number}", durable=True, arguments=given))
            queues[-1].publish(message(b"full"))
        for queue in queues:
            self.host.bind("mesh", queue, "", {})
        return queues

    def publish(self, queue: Any, body: bytes) -> None:
        self.sent = 0
        queue.publish(message(body, queue.name))
        self.turns.append(self.sent)

    def come_to_rest(self) -> None:
        """Let turns pass until there is nothing more to do."""
        while self.timers.due <= self.clock.steady:
            self.sent = 0
            self.timers.run()
            self.turns.append(self.sent)


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    return Net(monkeypatch)


def test_two_queues_that_drop_into_each_other_pass_everything_on_in_turns(net: Net) -> None:
    first, second = (
        net.host.declare_queue(
            here,
            arguments={
                "x-max-length": 1_500,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": there,
            },
        )
        for here, there in (("a", "b"), ("b", "a"))
    )
    for number in range(1_500):
        first.publish(message(b"a%d" % number, "a"))
        second.publish(message(b"b%d" % number, "b"))
    net.publish(first, b"new")
    net.come_to_rest()
    # Each has dropped all that it had, and what came back to where it had been is gone.
    assert sum(net.turns) > 3_000
    assert net.turns[0] in range(CHAINED_PER_TURN, 2 * CHAINED_PER_TURN)
    assert max(net.turns) <= 4 * CHAINED_PER_TURN
    assert rest(first) == [b"b%d" % number for number in range(1_500)]
    assert rest(second) == [*(b"a%d" % number for number in range(1, 1_500)), b"new"]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_mesh_of_full_queues_takes_many_short_turns(net: Net, kind: dict[str, Any]) -> None:
    queues = net.mesh(6, kind)
    net.publish(queues[0], b"new")
    net.come_to_rest()
    assert net.turns[0] in range(CHAINED_PER_TURN, 2 * CHAINED_PER_TURN)
    assert max(net.turns) <= len(queues) * MAX
    assert len(net.turns) > 5
    assert sum(net.turns) > 1_000
    assert [queue.ready_count() for queue in queues] == [1] * 6


def test_while_others_go_in_turns_a_full_queue_drops_more_than_it_gets(net: Net) -> None:
    queues = net.mesh(6, {})
    net.publish(queues[0], b"new")
    assert net.timers.due <= net.clock.steady, "the chain should be too long for one turn"
    for number in range(100):
        net.publish(queues[0], b"%d" % number)
    assert queues[0].ready_count() < 10
    assert max(net.turns) <= 2 * CHAINED_PER_TURN + 2


def test_refused_messages_of_a_mesh_go_on_in_turns_too(net: Net) -> None:
    queues = net.mesh(7, {"x-overflow": "reject-publish-dlx"})
    net.publish(queues[0], b"refused")
    assert net.turns == [REFUSED_PER_TURN]
    # Nobody has to wait for it: others are behind it.
    net.publish(queues[1], b"refused too")
    assert net.turns[1] == 0
    net.come_to_rest()
    assert max(net.turns) <= REFUSED_PER_TURN
    assert sum(net.turns) > 2 * REFUSED_PER_TURN
    assert [rest(queue) for queue in queues] == [[b"full"]] * 7


def test_one_queue_after_the_other_keeps_the_order_of_what_it_drops(net: Net) -> None:
    for here, there in (("a", "b"), ("b", "c"), ("c", "d")):
        given = {
            "x-max-length-bytes": 4,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": there,
        }
        net.host.declare_queue(here, arguments=given)
    last = net.host.declare_queue("d")
    first = net.host.queue("a")
    for number in range(40):
        net.publish(first, b"%02d" % number)
    net.publish(first, b"four")
    net.come_to_rest()
    assert len(net.turns) == 41
    assert rest(last) == [b"%02d" % number for number in range(36)]
    assert rest(first) == [b"four"]


def test_a_letter_that_cannot_be_sent_keeps_no_other_back(
    net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = net.mesh(3, {})
    send = DeadLetters.send

    def fail(letters: DeadLetters, *args: Any) -> int:
        send(letters, *args)
        raise OSError("the second letter was about to follow")

    with monkeypatch.context() as broken:
        broken.setattr(DeadLetters, "send", fail)
        with pytest.raises(OSError, match="was about to follow"):
            queues[0].publish(message(b"one"))
    net.publish(queues[0], b"two")
    net.come_to_rest()
    assert net.turns[0] > 0
    assert [queue.ready_count() for queue in queues] == [1] * 3


def test_a_dead_letter_that_cannot_be_made_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    timers = Timers(clock)
    told: list[str] = []
    timers.failures.report = lambda name, text: told.append(name)
    host = VHost("/", MemoryStore(Gauge()), EDITOR, clock, timers=timers)
    dead = host.declare_queue("dead")
    arguments = {
        "x-max-length": 1,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    }
    queue = host.declare_queue("q", arguments=arguments)
    events = DeadLetters._events

    def broken(letters: DeadLetters, message: Any, *args: Any) -> Any:
        if message.body == b"bad":
            raise ValueError("cannot be encoded")
        return events(letters, message, *args)

    monkeypatch.setattr(DeadLetters, "_events", broken)
    for body in (b"bad", b"good", b"last"):
        queue.publish(message(body))
    assert rest(dead) == [b"good"]
    assert told == ["DeadLetters.send"]


def test_what_one_message_displaces_is_dropped_as_the_budget_allows(net: Net) -> None:
    net.host.declare_queue("dead")
    given = {
        "x-max-length-bytes": 1_000,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    }
    queue = net.host.declare_queue("q", arguments=given)
    for _ in range(50):
        queue.publish(message(b"x" * 20))
    net.timers.work.begin(4 * LETTER_UNITS)
    net.publish(queue, b"y" * 1_000)
    net.timers.work.end()
    assert 0 < net.sent <= 4
    net.come_to_rest()
    assert queue.ready_count() == 1
    assert net.host.queues["dead"].ready_count() == 50
