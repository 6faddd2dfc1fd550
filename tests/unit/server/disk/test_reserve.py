"""Room that is kept for a full disk: made where there is enough, and gone when it is needed."""

from __future__ import annotations

from pathlib import Path

from harebell.server.disk.reserve import NAME, Reserve
from harebell.server.limits import RESERVE_BYTES, RESERVE_SHARE

TOTAL = 64 << 20
OCTETS = TOTAL // RESERVE_SHARE


def kept(directory: Path) -> int:
    """Octets that are really taken on the disk."""
    path = directory / NAME
    return path.stat().st_blocks * 512 if path.exists() else 0


def test_a_reserve_takes_its_room_on_the_disk_and_gives_it_back_once(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, TOTAL)
    reserve.renew(free=TOTAL)
    assert not reserve.spent
    assert kept(tmp_path) >= OCTETS
    assert reserve.spend()
    assert reserve.spent
    assert kept(tmp_path) == 0
    assert not reserve.spend()


def test_a_large_disk_keeps_no_more_than_the_limit(tmp_path: Path) -> None:
    assert Reserve(tmp_path, 1 << 40).byte_count == RESERVE_BYTES


def test_a_reserve_is_made_only_where_as_much_again_is_left(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, TOTAL)
    reserve.renew(free=2 * OCTETS - 1)
    assert reserve.spent
    assert kept(tmp_path) == 0
    reserve.renew(free=2 * OCTETS)
    assert not reserve.spent


def test_room_kept_by_the_last_process_is_kept_on_a_full_disk(tmp_path: Path) -> None:
    Reserve(tmp_path, TOTAL).renew(free=TOTAL)
    again = Reserve(tmp_path, TOTAL)
    again.renew(free=0)
    assert not again.spent
    assert again.spend()


def test_where_no_such_file_can_be_made_nobody_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    reserve = Reserve(tmp_path, TOTAL)
    reserve.renew(free=TOTAL)
    assert not reserve.spent
    assert not reserve.spend()
