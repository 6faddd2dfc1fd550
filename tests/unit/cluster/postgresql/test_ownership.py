"""When a store may be claimed, by the clock of the broker that looks."""

from __future__ import annotations

import socket
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harebell.cluster.postgresql.database import Database
from harebell.cluster.postgresql.owned_store import note_claim, was_owner
from harebell.cluster.postgresql.ownership import (
    DRAINED_SECONDS,
    LeaseWatch,
    Ownership,
    StoreRow,
    now,
)
from harebell.cluster.postgresql.tables import Tables

LEASE_MS = 3_000


def seen(beat: int, epoch: int = 1, *, released: bool = False) -> StoreRow:
    return StoreRow(
        epoch, beat, released, "other", {}, LEASE_MS, "store", drained=False, successor=""
    )


def test_a_lease_that_is_not_renewed_ends_by_the_clock_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/none"
        # Long enough for all that follows to be within it.
        database, tables = Database(url, "harebell", 60_000, "one", "fsync"), Tables("harebell")
        began = now()
        fresh = Ownership(database, tables, 1, began, "1", lambda _level, _line: None)
        over = Ownership(database, tables, 1, began - 60.1, "1", lambda _level, _line: None)
        try:
            assert fresh.holds()
            assert 0.0 < fresh.seconds_left <= 60.0
            # Connections are closed while the broker may still say why.
            assert began + 40.0 < fresh.closes_at < fresh.ends_at == began + 60.0
            # The server has not said anything: nothing but the time has passed.
            assert (over.lost, over.holds(), over.seconds_left) == ("", False, 0.0)
        finally:
            silent.close()
            for each in (fresh, over):
                each.end(release=False)


def test_a_store_is_claimed_after_a_whole_lease_of_silence() -> None:
    watch = LeaseWatch("this")
    assert not watch.may_claim(seen(7), 100.0)
    assert not watch.may_claim(seen(7), 103.0)
    assert watch.may_claim(seen(7), 103.1)


def test_a_renewal_and_a_claim_of_another_broker_begin_a_new_lease() -> None:
    watch = LeaseWatch("this")
    watch.may_claim(seen(7), 100.0)
    assert not watch.may_claim(seen(8), 103.5)
    assert not watch.may_claim(seen(8), 106.0)
    assert not watch.may_claim(seen(8, epoch=2), 107.0)
    assert not watch.may_claim(seen(8, epoch=2), 110.0)
    assert watch.may_claim(seen(8, epoch=2), 110.1)


def test_a_store_that_was_given_back_is_claimed_at_once() -> None:
    assert LeaseWatch("this").may_claim(seen(7, released=True), 100.0)


def test_a_store_that_was_drained_is_for_the_named_or_any_other_broker() -> None:
    drained = seen(7, released=True)._replace(drained=True)
    assert LeaseWatch("this").may_claim(drained, 100.0)
    assert not LeaseWatch("other").may_claim(drained, 100.0)
    named = drained._replace(successor="third")
    assert LeaseWatch("third").may_claim(named, 100.0)
    watch = LeaseWatch("this")
    assert not watch.may_claim(named, 100.0)
    assert watch.may_claim(named, 100.1 + DRAINED_SECONDS)


def test_after_the_server_was_away_the_lease_is_waited_for_again() -> None:
    watch = LeaseWatch("this")
    watch.may_claim(seen(7), 100.0)
    watch.forget()
    assert not watch.may_claim(seen(7), 200.0)
    assert watch.may_claim(seen(7), 203.1)


@given(st.lists(st.tuples(st.floats(0.0, 5.0), st.booleans()), max_size=50))
def test_a_standby_never_claims_within_a_lease_of_the_last_renewal(
    looks: list[tuple[float, bool]],
) -> None:
    watch = LeaseWatch("this")
    time, beat, renewed = 0.0, 0, 0.0
    for passed, renews in looks:
        time += passed
        if renews:
            beat += 1
            renewed = time
        if watch.may_claim(seen(beat), time):
            assert time - renewed > LEASE_MS / 1_000


def test_the_broker_of_a_data_directory_knows_the_store_that_it_owned(tmp_path: Path) -> None:
    assert not was_owner(tmp_path, "store", 3)
    note_claim(tmp_path, "store", 3)
    assert was_owner(tmp_path, "store", 3)
    assert not was_owner(tmp_path, "store", 4)
    assert not was_owner(tmp_path, "another", 3)
