"""The checker finds the one promise that each of these made-up histories breaks."""

from __future__ import annotations

import pytest

from tests.postgresql.history import Tenures
from tests.robustness.ledger import Ledger


def _body(number: int) -> bytes:
    return b"%d:body" % number


def _serve(tenures: Tenures, connection: str, owner: str, *times: float) -> None:
    for at in times:
        tenures.speaks(connection, owner, at)


def test_owners_that_take_turns_pass() -> None:
    tenures = Tenures()
    _serve(tenures, "1", "a", 1.0, 2.0)
    _serve(tenures, "2", "a", 1.5, 2.5)
    _serve(tenures, "3", "b", 6.0, 7.0)
    _serve(tenures, "4", "a", 12.0, 13.0)
    assert tenures.owners == ["a", "b", "a"]
    assert tenures.overlaps() == []


def test_a_broker_that_ignores_its_epoch_is_found_by_its_late_delivery() -> None:
    tenures = Tenures()
    _serve(tenures, "1", "a", 1.0, 6.5)
    _serve(tenures, "2", "b", 6.0, 7.0)
    assert tenures.overlaps() == ["'a' still served 500 ms after 'b' had begun to"]


def test_a_broker_that_ignores_its_epoch_is_found_by_a_new_connection_too() -> None:
    tenures = Tenures()
    _serve(tenures, "1", "a", 1.0, 2.0)
    _serve(tenures, "2", "b", 6.0, 9.0)
    _serve(tenures, "3", "a", 7.0)
    assert tenures.overlaps() == ["'b' still served 2000 ms after 'a' had begun to"]


def test_an_overlap_is_found_behind_a_shorter_connection_of_the_same_owner() -> None:
    tenures = Tenures()
    _serve(tenures, "1", "a", 1.0, 9.0)
    _serve(tenures, "2", "a", 2.0, 3.0)
    _serve(tenures, "3", "b", 8.0)
    assert len(tenures.overlaps()) == 1


def test_a_broker_that_confirms_before_it_commits_is_found_after_the_next_has_taken_over() -> None:
    ledger = Ledger()
    for number in range(3):
        ledger.sends(number, _body(number), ("q",))
        ledger.confirms(number)
    # It dies, and the batch with the last message was not in PostgreSQL yet.
    ledger.restarts()
    for number in range(2):
        ledger.delivers("q", number, _body(number), reader=1)
        ledger.settles("q", number)
    with pytest.raises(AssertionError, match="message 2 of 'q' was confirmed; it never came"):
        ledger.judge().check()


def test_an_acknowledgement_of_a_committed_transaction_that_is_forgotten_is_found() -> None:
    ledger = Ledger()
    ledger.sends(0, _body(0), ("q",))
    ledger.confirms(0)
    ledger.delivers("q", 0, _body(0))
    ledger.transacts([], [("q", 0)])
    ledger.settles("q", 0, durable=True)
    ledger.restarts()
    ledger.delivers("q", 0, _body(0), redelivered=True, reader=1)
    with pytest.raises(AssertionError, match="message 0 came back to 'q'"):
        ledger.judge().check()


def test_a_new_owner_that_delivers_out_of_order_is_found() -> None:
    ledger = Ledger()
    for number in range(2):
        ledger.sends(number, _body(number), ("q",))
    ledger.restarts()
    for number in (1, 0):
        ledger.delivers("q", number, _body(number), reader=1)
        ledger.settles("q", number)
    with pytest.raises(AssertionError, match="message 0 came from 'q' after 1"):
        ledger.judge().check()
