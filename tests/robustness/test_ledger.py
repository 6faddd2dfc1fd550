"""The ledger finds every kind of broken promise that is planted before it, and no other."""

from __future__ import annotations

import pytest

from tests.robustness.ledger import KINDS, Ledger


def _body(number: int) -> bytes:
    return b"%d:body" % number


def _sent(count: int = 3, *, queues: tuple[str, ...] = ("q",), persistent: bool = True) -> Ledger:
    ledger = Ledger()
    for number in range(count):
        ledger.sends(number, _body(number), queues, persistent=persistent)
        ledger.confirms(number)
    return ledger


def _take(ledger: Ledger, number: int, redelivered: bool = False, reader: int = 0) -> None:
    ledger.delivers("q", number, _body(number), redelivered=redelivered, reader=reader)
    ledger.settles("q", number)


def _only(ledger: Ledger, kind: str, count: int = 1) -> str:
    """The one kind of violation that was planted was found, and no other; its sentence."""
    verdict = ledger.judge()
    found = {name: len(getattr(verdict, name)) for name in KINDS}
    assert found == {**dict.fromkeys(KINDS, 0), kind: count}
    with pytest.raises(AssertionError, match=f"seed 7: {count} violations\n  {kind}: "):
        verdict.check("seed 7")
    return str(getattr(verdict, kind)[0])


def test_a_good_run_passes() -> None:
    ledger = _sent()
    _take(ledger, 0)
    ledger.restarts()
    _take(ledger, 0, redelivered=True, reader=1)
    _take(ledger, 1, reader=1)
    ledger.keeps("q", 2)
    verdict = ledger.judge().check("never shown")
    assert (verdict.sent, verdict.confirmed, verdict.delivered, verdict.again) == (3, 3, 3, 1)
    assert "3 sent, 3 confirmed, 3 delivered (1 again): 0 lost" in str(verdict)


def test_a_confirmed_message_that_never_comes_is_lost() -> None:
    ledger = _sent()
    _take(ledger, 0)
    _take(ledger, 2)
    assert "message 1 of 'q' was confirmed; it never came" in _only(ledger, "lost")


def test_a_delivered_message_that_nobody_settled_and_nobody_finds_is_lost() -> None:
    ledger = _sent(1)
    ledger.delivers("q", 0, _body(0))
    assert "was delivered once" in _only(ledger, "lost")


def test_the_first_of_two_deliveries_may_be_read_later_than_the_second() -> None:
    ledger = _sent(1)
    _take(ledger, 0, redelivered=True, reader=1)
    _take(ledger, 0, reader=2)
    assert not ledger.judge().violations
    _take(ledger, 0, reader=3)
    assert "without mark" in _only(ledger, "unmarked")


def test_a_later_life_or_the_same_reader_has_no_such_excuse() -> None:
    ledger = _sent(2)
    _take(ledger, 0, redelivered=True, reader=1)
    _take(ledger, 0, reader=1)
    _take(ledger, 1, redelivered=True, reader=1)
    ledger.restarts()
    _take(ledger, 1, reader=2)
    _only(ledger, "unmarked", 2)


def test_a_message_is_owed_to_each_of_its_queues() -> None:
    ledger = _sent(1, queues=("q", "other"))
    _take(ledger, 0)
    assert "'other'" in _only(ledger, "lost")


def test_an_unconfirmed_message_may_be_there_or_not() -> None:
    ledger = Ledger()
    for number in range(2):
        ledger.sends(number, _body(number), ("q",))
    _take(ledger, 1)
    assert not ledger.judge().violations


def test_a_message_of_a_deleted_queue_may_be_gone() -> None:
    ledger = _sent()
    ledger.drops("other")
    assert len(ledger.judge().lost) == 3
    ledger.drops("q")
    assert not ledger.judge().violations


@pytest.mark.parametrize("number", [None, 77])
def test_a_message_that_nobody_sent_is_a_phantom(number: int | None) -> None:
    ledger = Ledger()
    ledger.delivers("q", number, b"77:body")
    assert "nobody sent it" in _only(ledger, "phantom")


def test_a_message_from_the_wrong_queue_is_a_phantom() -> None:
    ledger = _sent(1)
    _take(ledger, 0)
    ledger.delivers("other", 0, _body(0))
    assert "was not sent there" in _only(ledger, "phantom")


def test_a_confirm_of_what_nobody_sent_is_a_phantom() -> None:
    ledger = Ledger()
    ledger.confirms(5)
    assert "is confirmed, and nobody sent it" in _only(ledger, "phantom")


def test_a_changed_body_is_found() -> None:
    ledger = _sent(1)
    ledger.delivers("q", 0, b"0:bodY")
    ledger.settles("q", 0)
    assert "message 0 of 'q' came as b'0:bodY'" in _only(ledger, "changed")


def test_a_wrong_order_to_one_reader_is_found() -> None:
    ledger = _sent()
    _take(ledger, 1)
    _take(ledger, 0)
    _take(ledger, 2)
    assert "message 0 came from 'q' after 1" in _only(ledger, "inverted")


def test_two_readers_and_redelivered_messages_have_no_order() -> None:
    ledger = _sent()
    _take(ledger, 2)
    _take(ledger, 1, reader=1)
    _take(ledger, 0, redelivered=True)
    assert not ledger.judge().violations


def test_messages_of_two_sources_have_no_order() -> None:
    ledger = Ledger()
    for number in range(2):
        ledger.sends(number, _body(number), ("q",), source=number)
    _take(ledger, 1)
    _take(ledger, 0)
    assert not ledger.judge().violations


def test_a_second_delivery_without_the_mark_is_found() -> None:
    ledger = _sent(1)
    _take(ledger, 0)
    _take(ledger, 0, reader=1)
    assert "message 0 came again from 'q' without mark" in _only(ledger, "unmarked")


def test_messages_settled_for_good_must_not_come_back() -> None:
    ledger = _sent(1)
    _take(ledger, 0)
    ledger.settles("q", 0, durable=True)
    _take(ledger, 0, redelivered=True)
    assert "message 0 came back to 'q'" in _only(ledger, "returned")


def test_a_transient_message_must_not_come_back_after_a_restart() -> None:
    ledger = _sent(2, persistent=False)
    _take(ledger, 0)
    ledger.restarts()
    assert not ledger.judge().violations
    _take(ledger, 1)
    assert "message 1 came back to 'q'" in _only(ledger, "returned")


def test_a_transient_message_is_owed_until_the_restart() -> None:
    assert "never came" in _only(_sent(1, persistent=False), "lost")


def _transaction(*met: int) -> Ledger:
    """One that publishes 0 and 1 and acknowledges 2 and 3; of these some are met after a crash."""
    ledger = _sent(2)
    for number in (2, 3):
        ledger.sends(number, _body(number), ("q",))
        ledger.confirms(number)
        _take(ledger, number)
    ledger.transacts([("q", 0), ("q", 1)], [("q", 2), ("q", 3)])
    ledger.restarts()
    for number in met:
        _take(ledger, number, redelivered=True)
    return ledger


@pytest.mark.parametrize("met", [(0, 1), (2, 3)], ids=["all", "nothing"])
def test_a_transaction_may_outlive_a_crash_or_not(met: tuple[int, ...]) -> None:
    assert not _transaction(*met).judge().split


@pytest.mark.parametrize(
    ("met", "text"),
    [
        ((0,), "message 0 of 'q' was there later, 1 of 'q' was not"),
        ((0, 1, 2, 3), "message 0 of 'q' was there later, acknowledged 2 of 'q' too"),
        ((3,), "1 of 2 acknowledged messages came back"),
        ((), "message 0 of 'q' is lost, what it acknowledged too"),
    ],
)
def test_half_a_transaction_is_found(met: tuple[int, ...], text: str) -> None:
    assert any(text in each for each in _transaction(*met).judge().split)


def test_an_unconfirmed_message_may_go_with_the_transaction_that_acknowledged_it() -> None:
    ledger = Ledger()
    for number in range(2):
        ledger.sends(number, _body(number), ("q",))
    _take(ledger, 0)
    ledger.transacts([("q", 1)], [("q", 0)])
    ledger.restarts()
    assert not ledger.judge().violations


def test_a_copy_knows_of_the_transactions() -> None:
    assert _transaction(0).copy().judge().split
    assert not _transaction(0, 1).copy().judge().split


def test_messages_that_a_transaction_put_into_a_deleted_queue_may_be_gone() -> None:
    ledger = _transaction(0)
    ledger.drops("q")
    assert not ledger.judge().split


def test_messages_of_a_transaction_that_were_taken_before_the_crash_say_nothing() -> None:
    ledger = _sent(2)
    ledger.transacts([("q", 0), ("q", 1)])
    _take(ledger, 0)
    ledger.restarts()
    _take(ledger, 1, reader=1)
    assert not ledger.judge().violations


def test_a_copy_goes_on_without_the_original() -> None:
    ledger = _sent(2)
    _take(ledger, 0)
    other = ledger.copy()
    _take(other, 0)
    _take(other, 1)
    assert len(other.judge().unmarked) == 1
    assert not other.judge().lost
    assert len(ledger.judge().lost) == 1
    assert not ledger.judge().unmarked
    assert ledger.delivered("q", 0)
    assert not ledger.delivered("q", 1)
    assert other.delivered("q", 1)


def test_a_number_is_sent_once() -> None:
    with pytest.raises(AssertionError, match="message 0 is sent twice"):
        _sent(1).sends(0, b"", ("q",))
