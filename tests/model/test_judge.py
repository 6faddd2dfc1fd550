"""The reference notices wrong deliveries, and the comparison notices a broker that errs."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from tests.model.driver import Driver
from tests.model.judge import judge
from tests.model.peer import call, publish
from tests.model.reference import Reference
from tests.model.things import Message

AT = (0, 1)


def _reference(count: int = 3, prefetch: int = 0) -> Reference:
    """A reference with one queue, one consumer `c` and some ready messages."""
    reference = Reference()
    reference.open_connection(0, True)
    reference.open_channel(0, 1)
    reference.do(AT, "declare_queue", "q", False, False, False)
    reference.do(AT, "qos", prefetch, False)
    reference.do(AT, "consume", "q", "c", False, False, 0)
    for number in range(count):
        reference.do(AT, "publish", Message("", "q", b"%d" % number, {}), False)
    return reference


def _delivery(number: int, tag: int, redelivered: bool = False) -> tuple[int, tuple[Any, ...]]:
    return (0, (1, "c", tag, redelivered, "", "q", b"%d" % number))


@pytest.mark.parametrize(
    ("deliveries", "complaint"),
    [
        ([_delivery(0, 1)], "could take them"),
        ([_delivery(1, 1)], "not the oldest"),
        ([_delivery(7, 1)], "not ready"),
        ([_delivery(0, 2)], "delivery tag 2, not 1"),
        ([_delivery(0, 1, True)], "redelivered is wrong"),
        ([_delivery(0, 1), _delivery(0, 2)], "not ready"),
        ([_delivery(0, 1), _delivery(2, 2), _delivery(1, 3)], "after a later"),
    ],
    ids=["one-left", "out-of-order", "invented", "wrong-tag", "wrong-mark", "twice", "swapped"],
)
def test_wrong_deliveries_are_found(
    deliveries: list[tuple[int, tuple[Any, ...]]], complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        judge(_reference(), deliveries)


def test_more_than_the_prefetch_is_found() -> None:
    with pytest.raises(AssertionError, match="no credit"):
        judge(_reference(prefetch=1), [_delivery(0, 1), _delivery(1, 2)])


def test_a_lower_priority_served_first_is_found() -> None:
    reference = _reference(count=0)
    reference.do(AT, "consume", "q", "high", False, False, 9)
    reference.do(AT, "publish", Message("", "q", b"0", {}), False)
    with pytest.raises(AssertionError, match="come before c"):
        judge(reference, [_delivery(0, 1)])


def _driver() -> Driver:
    driver = Driver()
    driver.ensure(AT)
    octets = call(1, m.QueueDeclare(queue="q"))
    driver.run(AT, octets, "declare_queue", "q", False, False, False)
    driver.run(AT, publish(1, "", "q", b"0"), "publish", Message("", "q", b"0", {}), False)
    driver.check_state()
    return driver


def test_a_message_that_the_broker_loses_is_found() -> None:
    driver = _driver()
    driver.real.vhost.queues["q"].purge()
    with pytest.raises(AssertionError):
        driver.check_state()


def test_a_reply_that_differs_is_found() -> None:
    driver = _driver()
    driver.real.vhost.queues["q"].purge()
    with pytest.raises(AssertionError):
        driver.run(AT, call(1, m.QueuePurge(queue="q")), "purge", "q")


def test_memory_that_stays_counted_is_found() -> None:
    driver = _driver()
    driver.real.gauge.add(1)
    with pytest.raises(AssertionError, match="still counted"):
        driver.finish()
