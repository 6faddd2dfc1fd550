"""Fair share of priorities: each level gives its share in a row, then the next has its turn."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import rest

LEVELS = 4


def shared_queue(**arguments: Any) -> Any:
    """A queue of four levels with these arguments."""
    given = {f"qpid.{name.replace('_', '-')}": value for name, value in arguments.items()}
    host = VHost("/", MemoryStore(Gauge()), EDITOR)
    return host.declare_queue("q", arguments={"x-max-priority": LEVELS - 1, **given})


def publish(queue: Any, priorities: list[int]) -> None:
    for number, priority in enumerate(priorities):
        body = b"%d.%d" % (priority, number)
        queue.publish(Message("", "q", Properties(b"\0\0", 0, priority), body))


def levels(queue: Any) -> list[int]:
    return [int(body[:1]) for body in rest(queue)]


def test_levels_take_turns_and_the_rest_of_one_comes_without_waiting() -> None:
    queue = shared_queue(fairshare=2)
    publish(queue, [3] * 5 + [1] * 3 + [0])
    assert levels(queue) == [3, 3, 1, 1, 0, 3, 3, 1, 3]


def test_a_level_has_its_own_share_and_0_is_any_number() -> None:
    queue = shared_queue(fairshare=1, fairshare_3=0, fairshare_1=2)
    publish(queue, [3] * 3 + [2] * 2 + [1] * 3)
    assert levels(queue) == [3, 3, 3, 2, 1, 1, 2, 1]


def test_what_is_shown_first_is_what_is_taken_first() -> None:
    queue = shared_queue(fairshare=1)
    publish(queue, [3, 3, 2, 0])
    for _ in range(4):
        head = queue.head()
        taken = queue.get()
        assert taken[0].body == head.body
        queue.settle(taken[1])


def test_a_limit_drops_by_priority_and_not_by_turn() -> None:
    queue = shared_queue(fairshare=1)
    publish(queue, [3, 2, 1])
    queue.settle(queue.get()[1])
    queue.configure({"max-length": 1})
    assert levels(queue) == [1]


def test_leases_see_turns_too() -> None:
    queue = shared_queue(fairshare=1)
    publish(queue, [3, 3, 1])
    claim = queue.claims().claim(2, 0, "group")
    assert sorted(run.level for run in claim.runs) == [1, 3]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"qpid.fairshare": 2}, "it needs priorities"),
        ({"x-max-priority": 3, "qpid.fairshare-4": 2}, "there are the levels 0 to 3"),
        ({"x-max-priority": 3, "qpid.fairshare-x": 2}, "there are the levels 0 to 3"),
        ({"x-max-priority": 3, "x-qpid-fairshare": -1}, "not -1"),
        ({"x-max-priority": 3, "qpid.fairshare": True}, "a share is a number from 0"),
    ],
)
def test_shares_that_cannot_be_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(Refusal, match=text):
        VHost("/", MemoryStore(Gauge()), EDITOR).declare_queue("q", arguments=arguments)


@given(st.lists(st.integers(0, LEVELS - 1), max_size=40), st.lists(st.integers(0, 3), min_size=4))
def test_the_order_is_that_of_a_list_that_is_gone_through_in_turns(
    priorities: list[int], shares: list[int]
) -> None:
    queue = shared_queue(**{f"fairshare_{level}": shares[level] for level in range(LEVELS)})
    publish(queue, priorities)
    left = {level: priorities.count(level) for level in range(LEVELS)}
    expected: list[int] = []
    while sum(left.values()):
        for level in reversed(range(LEVELS)):
            taken = min(left[level], shares[level] or left[level])
            # With no shares at all there are no turns either: the same order.
            expected += [level] * taken
            left[level] -= taken
    assert levels(queue) == expected
