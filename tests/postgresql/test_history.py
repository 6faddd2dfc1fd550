"""The checker finds the one promise that each of these made-up histories breaks."""

from __future__ import annotations

from tests.postgresql.history import Tenures


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
