"""The ledger finds every kind of broken promise that is planted before it, and no other."""

from __future__ import annotations

from collections.abc import Callable

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


def _take_all(ledger: Ledger, *numbers: int) -> None:
    for number in numbers:
        _take(ledger, number)


def _settle_for_good_and_return(ledger: Ledger) -> None:
    _take(ledger, 0)
    ledger.settles("q", 0, durable=True)
    _take(ledger, 0, redelivered=True)


def _deliver_after_a_restart(ledger: Ledger) -> None:
    ledger.restarts()
    _take(ledger, 0)


def _take_without_mark(ledger: Ledger) -> None:
    _take(ledger, 0)
    _take(ledger, 0, reader=1)


def _take_in_another_life_without_mark(ledger: Ledger) -> None:
    _take(ledger, 0, redelivered=True, reader=1)
    ledger.restarts()
    _take(ledger, 0, reader=2)


def _send_elsewhere(ledger: Ledger) -> None:
    ledger.sends(0, _body(0), ("q",))
    ledger.delivers("other", 0, _body(0))


def _change(ledger: Ledger) -> None:
    ledger.delivers("q", 0, b"0:bodY")
    ledger.settles("q", 0)


@pytest.mark.parametrize(
    ("ledger", "plant", "kind", "words"),
    [
        (_sent(), lambda _: _take_all(_, 0, 2), "lost", "1 of 'q' was confirmed; it never came"),
        (_sent(1), lambda _: _.delivers("q", 0, _body(0)), "lost", "was delivered once"),
        (_sent(1, queues=("q", "r")), lambda _: _take(_, 0), "lost", "'r'"),
        (_sent(1, persistent=False), lambda _: None, "lost", "never came"),
        (_sent(0), lambda _: _.delivers("q", 77, b"77:body"), "phantom", "nobody sent it"),
        (_sent(0), lambda _: _.delivers("q", None, b"?"), "phantom", "nobody sent it"),
        (_sent(0), lambda _: _.confirms(5), "phantom", "is confirmed, and nobody sent it"),
        (_sent(0), _send_elsewhere, "phantom", "was not sent there"),
        (_sent(1), _change, "changed", "message 0 of 'q' came as b'0:bodY'"),
        (_sent(), lambda _: _take_all(_, 1, 0, 2), "inverted", "0 came from 'q' after 1"),
        (_sent(1), _take_without_mark, "unmarked", "message 0 came again from 'q' without mark"),
        (_sent(1), _take_in_another_life_without_mark, "unmarked", "without mark"),
        (_sent(1), _settle_for_good_and_return, "returned", "message 0 came back to 'q'"),
        (_sent(1, persistent=False), _deliver_after_a_restart, "returned", "0 came back to 'q'"),
    ],
)
def test_a_planted_fault_is_found_and_no_other(
    ledger: Ledger, plant: Callable[[Ledger], None], kind: str, words: str
) -> None:
    plant(ledger)
    verdict = ledger.judge()
    assert [name for name in KINDS if getattr(verdict, name)] == [kind]
    with pytest.raises(AssertionError, match=rf"seed 7: 1 violations\n  {kind}: "):
        verdict.check("seed 7")
    assert words in getattr(verdict, kind)[0]


def _restarted() -> Ledger:
    ledger = _sent()
    _take(ledger, 0)
    ledger.restarts()
    _take(ledger, 0, redelivered=True, reader=1)
    _take(ledger, 1, reader=1)
    ledger.keeps("q", 2)
    return ledger


def _dropped() -> Ledger:
    ledger = _sent()
    ledger.drops("q")
    return ledger


def _read_late() -> Ledger:
    """Of two readers the first of two deliveries is read later than the second."""
    ledger = _sent(1)
    _take(ledger, 0, redelivered=True, reader=1)
    _take(ledger, 0, reader=2)
    return ledger


def _of_two_readers() -> Ledger:
    ledger = _sent()
    _take(ledger, 2)
    _take(ledger, 1, reader=1)
    _take(ledger, 0, redelivered=True)
    return ledger


def _of_two_sources() -> Ledger:
    ledger = Ledger()
    for number in range(2):
        ledger.sends(number, _body(number), ("q",), source=number)
    _take_all(ledger, 1, 0)
    return ledger


def _unconfirmed() -> Ledger:
    ledger = Ledger()
    for number in range(2):
        ledger.sends(number, _body(number), ("q",))
    _take(ledger, 1)
    return ledger


@pytest.mark.parametrize(
    "run", [_restarted, _dropped, _read_late, _of_two_readers, _of_two_sources, _unconfirmed]
)
def test_a_good_run_passes(run: Callable[[], Ledger]) -> None:
    ledger = run()
    ledger.judge().check("never shown")
    ledger.copy().judge().check("never shown")


@pytest.mark.parametrize(
    ("met", "text"),
    [
        ((0, 1), ""),
        ((2, 3), ""),
        ((0,), "message 0 of 'q' was there later, 1 of 'q' was not"),
        ((0, 1, 2, 3), "message 0 of 'q' was there later, acknowledged 2 of 'q' too"),
        ((3,), "1 of 2 acknowledged messages came back"),
        ((), "message 0 of 'q' is lost, what it acknowledged too"),
    ],
)
def test_half_a_transaction_is_found_after_a_crash(met: tuple[int, ...], text: str) -> None:
    # It publishes 0 and 1 and acknowledges 2 and 3.
    ledger = _sent(4)
    _take_all(ledger, 2, 3)
    ledger.transacts([("q", 0), ("q", 1)], [("q", 2), ("q", 3)])
    ledger.restarts()
    for number in met:
        _take(ledger, number, redelivered=True)
    for judged in (ledger, ledger.copy()):
        split = judged.judge().split
        assert any(text in each for each in split) if text else not split
    ledger.drops("q")
    assert not ledger.judge().split
