"""Counted confirms: runs, single ones in any order, refusals, and what was never published."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.base.message import Message, Properties
from harebell.client.errors import PublishReturned
from harebell.client.message import ReturnedMessage
from harebell.client.protocol.counted_confirms import CountedConfirms


def test_a_run_settles_everything_up_to_its_number() -> None:
    tally = CountedConfirms()
    tally.count(10)
    tally.settle(4, True, taken=True)
    assert (len(tally), tally.confirmed) == (6, 4)
    tally.settle(4, True, taken=True)
    tally.settle(2, False, taken=True)
    assert (len(tally), tally.confirmed) == (6, 4)
    tally.settle(0, True, taken=True)
    assert (len(tally), tally.confirmed) == (0, 10)


def test_single_ones_may_come_in_any_order() -> None:
    tally = CountedConfirms()
    tally.count(5)
    for number in (3, 1, 3, 5):
        tally.settle(number, False, taken=True)
    assert (len(tally), tally.confirmed) == (2, 3)
    tally.settle(4, True, taken=False)
    assert (len(tally), tally.confirmed, tally.refused) == (0, 3, 2)


def test_the_oldest_is_the_first_that_is_not_settled() -> None:
    tally = CountedConfirms()
    assert tally.oldest == 1
    tally.count(5)
    tally.settle(2, False, taken=True)
    assert tally.oldest == 1
    tally.settle(1, False, taken=False)
    assert tally.oldest == 3
    tally.settle(0, True, taken=True)
    assert tally.oldest == 6


@pytest.mark.parametrize(("tag", "multiple"), [(4, False), (4, True), (0, False)])
def test_a_confirm_of_what_was_never_published_is_an_error(tag: int, multiple: bool) -> None:
    tally = CountedConfirms()
    tally.count(3)
    with pytest.raises(ProtocolError, match=f"confirm of publish {tag}, but only 3 were made"):
        tally.settle(tag, multiple, taken=True)


@given(st.lists(st.tuples(st.integers(1, 30), st.booleans(), st.booleans())))
def test_each_publish_is_counted_once_whatever_the_broker_sends(
    confirms: list[tuple[int, bool, bool]],
) -> None:
    tally = CountedConfirms()
    tally.count(30)
    waiting = set(range(1, 31))
    taken = 0
    for tag, multiple, good in confirms:
        settled = {number for number in waiting if number == tag or (multiple and number < tag)}
        waiting -= settled
        taken += len(settled) if good else 0
        tally.settle(tag, multiple, taken=good)
        assert (len(tally), tally.confirmed) == (len(waiting), taken)


def test_returned_messages_are_counted_and_handed_on() -> None:
    seen: list[PublishReturned] = []
    tally = CountedConfirms(seen.append)
    tally.count(1)
    error = PublishReturned(312, "NO_ROUTE", ReturnedMessage(b"b", "x", "k", Properties(b"\0\0")))
    assert tally.returned(error, Message("x", "k", Properties(b"\0\0"), b"b"))
    assert (tally.returned_count, seen) == (1, [error])


def test_messages_cannot_be_expected_one_by_one() -> None:
    with pytest.raises(ValueError, match="publishes on this channel are counted"):
        CountedConfirms().expect(None, 0, Message("", "k", Properties(b"\0\0"), b""), 0)  # type: ignore[arg-type]
