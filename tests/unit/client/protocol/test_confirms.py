"""Confirms: numbers, batches, returns, and what is kept to be sent again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.base.message import Message as WireMessage
from harebell.base.message import Properties
from harebell.client.errors import (
    AMQPError,
    BulkPublishFailed,
    ConnectionLost,
    PublishNacked,
    PublishReturned,
)
from harebell.client.message import ReturnedMessage
from harebell.client.protocol.confirms import MANDATORY, Bulk, Confirm, ConfirmTracker

EMPTY = Properties(b"\x00\x00")


def message(body: bytes = b"", key: str = "k", raw: bytes = b"\x00\x00") -> WireMessage:
    return WireMessage("x", key, Properties(raw), body)


def back(body: bytes = b"", key: str = "k", raw: bytes = b"\x00\x00") -> PublishReturned:
    return PublishReturned(312, "NO_ROUTE", ReturnedMessage(body, "x", key, Properties(raw)))


def expect(confirms: ConfirmTracker, sent: WireMessage | None = None, flags: int = 0) -> Confirm:
    confirm = Confirm()
    confirms.expect(confirm, 0, sent or message(), flags)
    return confirm


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans()), max_size=40))
def test_every_publish_is_settled_by_the_first_answer_that_covers_it(
    answers: list[tuple[int, bool, bool]],
) -> None:
    confirms = ConfirmTracker()
    waiting = [expect(confirms) for _ in range(30)]
    expected: dict[int, bool] = {}
    for tag, multiple, taken in answers:
        if tag == 0 and not multiple:
            with pytest.raises(ProtocolError):
                confirms.settle(tag, multiple, taken=taken)
            continue
        confirms.settle(tag, multiple, taken=taken)
        covered = range(1, (tag or 30) + 1) if multiple else [tag]
        for sequence in covered:
            expected.setdefault(sequence, taken)
    for sequence, confirm in enumerate(waiting, 1):
        assert confirm.done == (sequence in expected)
        if confirm.done:
            assert (confirm.error is None) == expected[sequence]
    assert len(confirms) == 30 - len(expected)


def test_a_confirm_beyond_the_last_publish_is_refused() -> None:
    confirms = ConfirmTracker()
    expect(confirms)
    with pytest.raises(ProtocolError, match="publish 2, but only 1"):
        confirms.settle(2, True, taken=True)


def test_a_return_belongs_to_the_first_waiting_publish_with_the_same_content() -> None:
    confirms = ConfirmTracker()
    other = expect(confirms, message(b"a", "other"), MANDATORY)
    plain = expect(confirms, message(b"b"), 0)
    first = expect(confirms, message(b"b"), MANDATORY)
    second = expect(confirms, message(b"b"), MANDATORY)
    assert confirms.returned(back(b"b"), message(b"b"))
    confirms.settle(0, True, taken=True)
    assert isinstance(first.error, PublishReturned)
    assert [confirm.error for confirm in (other, plain, second)] == [None, None, None]


def test_equal_returns_go_to_successive_publishes() -> None:
    confirms = ConfirmTracker()
    both = [expect(confirms, message(b"b"), MANDATORY) for _ in range(2)]
    assert confirms.returned(back(b"b"), message(b"b"))
    assert confirms.returned(back(b"b"), message(b"b"))
    assert not confirms.returned(back(b"b"), message(b"b"))
    confirms.settle(2, True, taken=True)
    assert all(isinstance(confirm.error, PublishReturned) for confirm in both)


def test_properties_tell_equal_bodies_apart_but_may_be_encoded_anew() -> None:
    confirms = ConfirmTracker()
    first = expect(confirms, message(b"b", raw=b"\x10\x00\x01"), MANDATORY)
    second = expect(confirms, message(b"b", raw=b"\x10\x00\x02"), MANDATORY)
    assert confirms.returned(back(b"b"), message(b"b", raw=b"\x10\x00\x02"))
    assert confirms.returned(back(b"b"), message(b"b", raw=b"\x00\x00"))
    confirms.settle(1, False, taken=True)
    confirms.settle(2, False, taken=True)
    assert isinstance(first.error, PublishReturned)
    assert isinstance(second.error, PublishReturned)


def test_a_nack_outweighs_a_return() -> None:
    confirms = ConfirmTracker()
    confirm = expect(confirms, message(b"b"), MANDATORY)
    confirms.returned(back(b"b"), message(b"b"))
    confirms.settle(1, False, taken=False)
    assert isinstance(confirm.error, PublishNacked)


def test_failing_ends_everything_that_waits_once() -> None:
    confirms = ConfirmTracker()
    done, waiting = expect(confirms), expect(confirms)
    confirms.settle(1, False, taken=True)
    confirms.fail(ConnectionLost("gone"))
    confirms.fail(ConnectionLost("again"))
    assert done.error is None
    assert str(waiting.error) == "gone"


def test_kept_publishes_can_be_taken_over_with_their_order_flags_and_tokens() -> None:
    confirms = ConfirmTracker(keep=True)
    bulk = Bulk()
    for token in range(4):
        confirms.expect(bulk, token, message(bytes([token])), token % 2)
    confirms.settle(2, False, taken=True)
    entries = list(confirms.take_over())
    assert [(token, sent.body, flags) for _, token, sent, flags in entries] == [
        (0, b"\x00", 0),
        (2, b"\x02", 0),
        (3, b"\x03", 1),
    ]
    assert len(confirms) == 0


def test_nothing_is_kept_unless_asked_for() -> None:
    confirms = ConfirmTracker()
    expect(confirms)
    confirms.fail(ConnectionLost("gone"))
    assert list(confirms.take_over()) == []


def test_a_bulk_counts_and_keeps_the_first_failures() -> None:
    confirms = ConfirmTracker()
    bulk = Bulk()
    lows: list[int] = []
    bulk.low, bulk.on_low = 1, lambda: lows.append(bulk.outstanding)
    for token in range(4):
        confirms.expect(bulk, token, message(), 0)
        bulk.outstanding += 1
    confirms.settle(1, False, taken=True)
    confirms.settle(3, False, taken=False)
    assert (bulk.confirmed, bulk.outstanding, lows) == (1, 2, [])
    confirms.settle(0, True, taken=True)
    assert (bulk.confirmed, bulk.outstanding, lows) == (3, 0, [1, 0])
    with pytest.raises(BulkPublishFailed) as caught:
        bulk.result()
    assert caught.value.confirmed == 3
    ((position, error),) = caught.value.failures
    assert position == 2
    assert isinstance(error, PublishNacked)


def test_a_bulk_without_failures_answers_how_many() -> None:
    bulk = Bulk()
    error: AMQPError | None = None
    for token in range(3):
        bulk.settle(token, error)
    assert bulk.result() == 3
