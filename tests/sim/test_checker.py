"""The checker finds every kind of broken promise that is planted before it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sim.checker import Checker, Violation


def _with_messages(count: int = 3) -> Checker:
    checker = Checker()
    for number in range(count):
        checker.publishes(number, b"%d:body" % number, 1, ("q",))
    return checker


def _receive(checker: Checker, *deliveries: tuple[int, bytes, bool]) -> None:
    for reader, body, redelivered in deliveries:
        checker.receives(reader, "q", body, redelivered)


def _end_without_a_confirmed_one(checker: Checker) -> None:
    checker.confirms(1)
    checker.restarts()
    checker.ends(set())


def _end_with_a_settled_one(checker: Checker) -> None:
    _settle(checker)
    checker.ends({("q", 0)})


def _settle(checker: Checker) -> None:
    item = checker.receives(9, "q", b"0:body", False)
    checker.acks(item)
    checker.closes_cleanly({item})


def _confirm_late(checker: Checker) -> None:
    checker.gives_up(1)
    checker.confirms(1)


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (_end_without_a_confirmed_one, "gone"),
        (lambda _: _receive(_, (9, b"77:body", False)), "never sent"),
        (lambda _: _receive(_, (9, b"", False)), "never sent"),
        (lambda _: _receive(_, (9, b"0:bodY", False)), "changed"),
        (lambda _: _.receives(9, "other", b"0:body", False), "not sent to"),
        (lambda _: _receive(_, (9, b"0:body", False), (9, b"0:body", False)), "twice"),
        (lambda _: _receive(_, (9, b"2:body", False), (9, b"1:body", False)), "sent later"),
        (_end_with_a_settled_one, "back again"),
        (_confirm_late, "after its connection ended"),
    ],
)
def test_a_planted_fault_is_found(plant: Callable[[Checker], None], words: str) -> None:
    with pytest.raises(Violation, match=words):
        plant(_with_messages())


def test_what_is_settled_unconfirmed_transient_or_of_a_deleted_queue_may_be_gone() -> None:
    checker = _with_messages()
    checker.confirms(0)
    _settle(checker)
    checker.gives_up(1)
    checker.publishes(3, b"3:body", 1, ("q",), persistent=False)
    checker.confirms(3)
    with pytest.raises(Violation, match="gone"):
        checker.ends(set())
    checker.restarts()
    checker.ends(set())
    # The broker that died may have forgotten the acknowledgement.
    checker.ends({("q", 0)})
    checker.confirms(2)
    checker.queue_deleted("q")
    checker.ends(set())
