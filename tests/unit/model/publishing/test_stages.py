"""Staged batches: kept apart by attempt, bounded, and gone when they are not needed."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.osfs import OsFiles
from harebell.base.ports import Files
from harebell.base.timers import Timers
from harebell.kernels.records import crc32c
from harebell.model.limits import (
    STAGE_KEEP_SECONDS,
    STAGE_LEFT_LOW_SECONDS,
    STAGE_LEFT_SECONDS,
    STAGE_SPARE_SECONDS,
)
from harebell.model.publishing import spare_files, stages
from harebell.model.publishing.publishers import STAGED, Key
from harebell.model.publishing.stage_files import Piece
from harebell.model.publishing.stages import DIRECTORY, Room, Stages
from tests.sim.disk import PowerCut, SimDisk

KEY = Key(STAGED, "/", "guest", "p")


class Area:
    """Stages with their clock."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.clock = Clock(1_000_000)
        self.timers = Timers(self.clock)
        self.stages = Stages(files, self.clock, self.timers)

    def append(
        self,
        data: bytes,
        *,
        batch: int = 0,
        attempt: tuple[int, int] = (0, 1),
        number: int = 0,
        key: Key = KEY,
        rows: int = 1,
    ) -> tuple[int, int]:
        piece = Piece("value", 0, 0, len(data), rows, crc32c(data))
        return self.stages.append(key, batch, attempt, number, piece, data)

    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds * 1000)
        self.timers.run()

    def read(self, *wanted: tuple[int, int, int], batch: int = 0) -> list[tuple[int, bytes]]:
        chosen = self.stages.chosen(KEY, batch, wanted)
        return [(part, self.stages.read(KEY, batch, piece)) for part, piece in chosen]


@pytest.fixture(params=["simulated", "real"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return SimDisk() if request.param == "simulated" else OsFiles(str(tmp_path))


@pytest.fixture
def area(files: Files) -> Area:
    return Area(files)


def test_pieces_come_back_in_the_order_that_is_asked_for(area: Area) -> None:
    assert area.append(b"one", rows=2) == (2, 3)
    assert area.append(b"other", attempt=(0, 2)) == (1, 5)
    assert area.append(b"two", number=1) == (3, 6)
    assert area.append(b"3", attempt=(1, 1)) == (1, 1)
    assert area.read((1, 1, 1), (0, 1, 3)) == [(1, b"3"), (0, b"one"), (0, b"two")]
    assert area.stages.byte_count == 12


def test_nothing_is_left_on_disk_of_what_was_dropped(area: Area) -> None:
    area.append(b"one", rows=5)
    area.append(b"two", batch=1)
    area.append(b"three", batch=2)
    assert area.stages.drop(KEY, 0) == 5
    assert area.stages.drop(KEY, 0) == 0
    area.stages.drop_below(KEY, 2)
    assert len(area.stages) == 1
    area.pass_time(STAGE_SPARE_SECONDS)
    assert len(area.files.names(DIRECTORY)) == 1
    area.append(b"x", key=KEY._replace(name="q"))
    area.stages.drop_all(KEY)
    assert (len(area.stages), area.stages.byte_count) == (1, 1)
    area.stages.vhost_gone("/")
    assert (len(area.stages), area.stages.byte_count, area.files.names(DIRECTORY)) == (0, 0, [])


def test_a_start_finds_what_was_staged_and_goes_on(area: Area, files: Files) -> None:
    area.append(b"one", rows=2)
    area.append(b"two", number=1)
    area.append(b"other", attempt=(1, 7))
    area.append(b"committed", batch=3, key=KEY._replace(name="q"))
    again = Area(files)
    again.stages.restore(lambda key: 0 if key == KEY else 4)
    assert len(again.stages) == 1
    assert len(files.names(DIRECTORY)) == 1
    assert again.append(b"two", number=1) == (3, 6)
    assert again.append(b"three", number=2) == (4, 11)
    third = Area(files)
    third.stages.restore(lambda _: 0)
    assert third.read((1, 7, 1), (0, 1, 4)) == [
        (1, b"other"),
        (0, b"one"),
        (0, b"two"),
        (0, b"three"),
    ]
    third.pass_time(STAGE_LEFT_SECONDS + 1)
    assert files.names(DIRECTORY) == []


def test_a_start_finds_batches_of_several_files_and_forgets_unknown_publishers(
    area: Area, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "STAGE_FILE_BYTES", 1)
    for number in range(12):
        area.append(b"%d" % number, number=number)
    again = Area(files)
    again.stages.restore(lambda _: 0)
    assert [data for _, data in again.read((0, 1, 12))] == [b"%d" % n for n in range(12)]
    again = Area(files)
    again.stages.restore(lambda _: None)
    assert len(again.stages) == 0
    again.pass_time(0)
    for _ in range(12):
        again.pass_time(0)
    assert files.names(DIRECTORY) == []


@pytest.mark.parametrize("damage", ["cut", "header", "nothing"])
def test_a_piece_that_a_start_finds_damaged_is_named_by_the_commit(
    area: Area, files: Files, damage: str
) -> None:
    area.append(b"one")
    area.append(b"two", number=1)
    (name,) = files.names(DIRECTORY)
    file = files.open(f"{DIRECTORY}/{name}")
    if damage == "cut":
        # The zeros behind the piece, and a byte of it.
        file.truncate(file.size() - 5)
    elif damage == "header":
        file.write_at(b"?", file.size() - 10)
    else:
        file.truncate(0)
    file.close()
    again = Area(files)
    again.stages.restore(lambda _: 0)
    here = 0 if damage == "nothing" else 1
    with pytest.raises(Refusal, match=f"{here} of 2 rows of its part 0 .* are here; send"):
        again.read((0, 1, 2))
    if here:
        assert again.append(b"two", number=1) == (2, 6)
        assert again.read((0, 1, 2)) == [(0, b"one"), (0, b"two")]


def test_a_batch_that_waits_for_too_long_is_dropped(area: Area) -> None:
    area.stages.came(KEY, object())
    area.append(b"old")
    area.pass_time(STAGE_KEEP_SECONDS - 1)
    area.append(b"new", batch=1)
    area.pass_time(2)
    assert len(area.stages) == 1
    assert area.read((0, 1, 1), batch=1) == [(0, b"new")]
    area.pass_time(STAGE_KEEP_SECONDS)
    assert len(area.stages) == 0


def test_a_batch_without_a_client_goes_after_minutes_and_sooner_on_a_low_disk(area: Area) -> None:
    me, other = object(), object()
    area.stages.came(KEY, me)
    area.stages.came(KEY, other)
    area.append(b"one")
    area.stages.left(other)
    area.pass_time(STAGE_LEFT_SECONDS + 1)
    assert (len(area.stages), area.stages.connections(KEY)) == (1, 1)
    area.stages.left(me)
    area.pass_time(STAGE_LEFT_SECONDS - 1)
    assert len(area.stages) == 1
    area.pass_time(2)
    assert len(area.stages) == 0
    area.append(b"one")
    area.pass_time(STAGE_LEFT_LOW_SECONDS + 1)
    assert len(area.stages) == 1
    area.stages.set_low(True)
    area.pass_time(0)
    assert (len(area.stages), area.files.names(DIRECTORY)) == (0, [])


def test_a_task_that_comes_back_in_time_finds_its_rows(area: Area) -> None:
    me = object()
    area.stages.came(KEY, me)
    area.append(b"one")
    area.stages.left(me)
    area.pass_time(STAGE_LEFT_SECONDS - 1)
    area.stages.came(KEY, me)
    area.pass_time(STAGE_LEFT_SECONDS)
    assert area.read((0, 1, 1)) == [(0, b"one")]


def test_an_attempt_goes_alone_and_the_batch_with_the_last(area: Area) -> None:
    area.append(b"one")
    area.append(b"two", attempt=(0, 2), rows=3)
    assert area.stages.discard(KEY, 0, (0, 1)) == 1
    assert area.stages.discard(KEY, 0, (0, 1)) == 0
    assert area.read((0, 2, 3)) == [(0, b"two")]
    assert area.stages.discard(KEY, 0, (0, 2)) == 3
    assert (len(area.stages), area.files.names(DIRECTORY)) == (0, [])


def test_a_batch_that_is_being_committed_is_not_dropped(area: Area) -> None:
    area.append(b"one")
    area.stages.committing(KEY, 0, under_way=True)
    with pytest.raises(Refusal, match="batch 0 of publisher 'p' is being committed"):
        area.stages.drop(KEY, 0)
    area.stages.drop_all(KEY)
    area.pass_time(STAGE_KEEP_SECONDS + 1)
    assert area.read((0, 1, 1)) == [(0, b"one")]


def test_a_large_batch_is_in_several_files_which_go_turn_by_turn(
    area: Area, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two pieces with their headers.
    monkeypatch.setattr(stages, "STAGE_FILE_BYTES", 80)
    for number in range(6):
        area.append(b"%03d" % number, number=number)
    assert len(area.files.names(DIRECTORY)) == 3
    assert [data for _, data in area.read((0, 1, 6))] == [b"%03d" % n for n in range(6)]
    area.stages.drop(KEY, 0)
    assert len(area.files.names(DIRECTORY)) == 2
    for _ in range(2):
        area.pass_time(0)
    assert area.files.names(DIRECTORY) == []


def test_a_large_file_goes_piece_by_piece_turn_by_turn(
    area: Area, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "STAGE_SWEEP_BYTES", 30)
    area.append(b"0123456789")
    (name,) = area.files.names(DIRECTORY)
    area.stages.drop(KEY, 0)
    sizes = []
    while area.files.names(DIRECTORY):
        file = area.files.open(f"{DIRECTORY}/{name}")
        sizes.append(file.size())
        file.close()
        area.pass_time(0)
    assert sizes == [60, 30]


def test_the_file_of_a_committed_batch_is_used_by_the_next_one(area: Area, files: Files) -> None:
    for number in range(3):
        area.append(b"0 of %d" % number, number=number)
    for batch in range(1, 5):
        area.stages.drop_below(KEY, batch)
        assert len(files.names(DIRECTORY)) == 1
        area.append(b"1 of %d" % batch, batch=batch)
    assert area.read((0, 1, 1), batch=4) == [(0, b"1 of 4")]
    assert len(files.names(DIRECTORY)) == 1
    again = Area(files)
    # Also if the publisher is forgotten and there once more.
    again.stages.restore(lambda _: 0)
    assert [(each.number, each.rows) for each in again.stages.all()] == [(4, 1)]
    assert again.append(b"2 of 4", batch=4, number=1) == (2, 12)
    assert again.read((0, 1, 2), batch=4) == [(0, b"1 of 4"), (0, b"2 of 4")]


def test_a_file_that_no_batch_uses_is_removed_after_a_moment_or_at_a_start(
    area: Area, files: Files
) -> None:
    area.append(b"one")
    area.stages.drop_below(KEY, 1)
    area.pass_time(STAGE_SPARE_SECONDS - 1)
    area.append(b"two", batch=1)
    area.stages.drop_below(KEY, 2)
    area.pass_time(STAGE_SPARE_SECONDS - 1)
    assert len(files.names(DIRECTORY)) == 1
    area.pass_time(1)
    assert files.names(DIRECTORY) == []
    area.append(b"three", batch=2)
    area.stages.drop_below(KEY, 3)
    assert len(files.names(DIRECTORY)) == 1
    again = Area(files)
    again.stages.restore(lambda _: 0)
    assert (len(again.stages), files.names(DIRECTORY)) == (0, [])


def test_files_are_kept_for_the_next_batch_where_there_is_much_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SimDisk(capacity=100_000)
    area = Area(disk)
    area.append(bytes(11_000))
    area.stages.drop_below(KEY, 1)
    assert len(disk.names(DIRECTORY)) == 1
    area.stages.set_low(True)
    assert disk.names(DIRECTORY) == []
    area.append(bytes(12_000), batch=1)
    area.stages.drop_below(KEY, 2)
    assert disk.names(DIRECTORY) == []
    monkeypatch.setattr(spare_files, "STAGE_SPARE_BYTES", 1_000)
    for batch, size in ((2, 400), (3, 400), (4, 1_000)):
        area.append(bytes(size), batch=batch)
    area.stages.drop_below(KEY, 5)
    assert len(disk.names(DIRECTORY)) == 2


def _with_a_file_of_another_batch() -> tuple[SimDisk, Area]:
    disk = SimDisk()
    area = Area(disk)
    for number in range(3):
        area.append(b"old%d" % number, number=number)
    area.stages.drop_below(KEY, 1)
    return disk, area


@pytest.mark.parametrize("batch", [0, 1])
def test_a_process_that_is_killed_leaves_no_piece_of_the_batch_that_had_the_file_before(
    batch: int,
) -> None:
    # The batch has the number of the one before if its publisher was forgotten meanwhile.
    found = set()
    for killed_at in range(1, 30):
        disk, area = _with_a_file_of_another_batch()
        at = disk.operations + killed_at

        def kill(operation: int, _kind: str, _path: str, at: int = at) -> None:
            if operation == at:
                raise PowerCut

        disk.hook = kill
        acknowledged = 0
        with contextlib.suppress(PowerCut):
            for number in range(3):
                area.append(b"new%d" % number, batch=batch, number=number)
                acknowledged += 1
        disk.hook = None
        again = Area(disk)
        again.stages.restore(lambda _: 0)
        rows = [(each.number, each.rows) for each in again.stages.all()]
        assert rows in ([], [(batch, 1)], [(batch, 2)], [(batch, 3)])
        count = rows[0][1] if rows else 0
        assert count >= acknowledged
        data = [each for _, each in again.read((0, 1, count), batch=batch)] if count else []
        assert data == [b"new%d" % number for number in range(count)]
        found.add(count)
    assert found == {0, 1, 2, 3}


def test_after_a_power_failure_no_piece_of_the_batch_that_had_the_file_before_counts() -> None:
    found = set()
    for seed in range(1_000):
        rng = random.Random(seed)
        disk, area = _with_a_file_of_another_batch()
        for name in disk.names(DIRECTORY):
            if rng.random() < 0.8:
                disk.open(f"{DIRECTORY}/{name}").sync()
                disk.sync_directory(DIRECTORY)
                disk.sync_directory("")
        for number in range(rng.randrange(4)):
            area.append(b"new%d" % number, batch=1, number=number)
        disk = disk.crash(rng)
        again = Area(disk)
        again.stages.restore(lambda _: 1)
        rows = [(each.number, each.rows) for each in again.stages.all()]
        assert rows in ([], [(1, 1)], [(1, 2)], [(1, 3)])
        _check_that_pieces_are_whole_or_damaged(again)
        found.add(rows[0][1] if rows else 0)
    assert found == {0, 1, 2, 3}


def test_after_a_power_failure_no_batch_has_pieces_of_another() -> None:
    # The publisher was forgotten meanwhile: the old batch may be there again, and expires.
    found = set()
    for seed in range(1_000):
        rng = random.Random(seed)
        disk, area = _with_a_file_of_another_batch()
        for number in range(rng.randrange(4)):
            area.append(b"new%d" % number, batch=1, number=number)
        again = Area(disk.crash(rng))
        again.stages.restore(lambda _: 0)
        _check_that_pieces_are_whole_or_damaged(again)
        found.update(each.number for each in again.stages.all())
    assert found == {0, 1}


def _check_that_pieces_are_whole_or_damaged(area: Area) -> None:
    for staged in area.stages.all():
        for number, piece in enumerate(staged.pieces[0, 1]):
            with contextlib.suppress(Refusal):
                data = area.stages.read(KEY, staged.number, piece)
                assert data == (b"old%d", b"new%d")[staged.number] % number


@pytest.mark.parametrize(
    ("room", "key", "text"),
    [
        (Room(user=5), KEY, r"3 bytes of user 'guest' are staged, .* 5 \(stage_user_limit\)"),
        (Room(vhost=5), KEY, r"3 bytes of vhost '/' are staged, .* 5 \(stage_vhost_limit\)"),
        (Room(floor=2**62), KEY, rf"free, and disk_free_limit is {2**62}; make room"),
    ],
)
def test_users_vhosts_and_the_disk_have_limits(room: Room, key: Key, text: str, area: Area) -> None:
    area.append(b"one")
    area.stages.room = room
    with pytest.raises(Refusal, match=text) as caught:
        area.append(b"two", number=1)
    assert caught.value.kind is ErrorKind.PRECONDITION_FAILED
    assert caught.value.text.startswith("cannot stage 3 bytes more of batch 0 of publisher 'p': ")
    assert area.read((0, 1, 1)) == [(0, b"one")]
    area.stages.room = Room(user=5, vhost=7)
    area.append(b"two", key=key._replace(user="other"))


def test_one_user_leaves_room_on_the_disk_for_others() -> None:
    area = Area(SimDisk(capacity=100_000))
    area.append(bytes(40_000))
    with pytest.raises(Refusal, match=r"the most is 49\d\d\d "):
        area.append(bytes(20_000), number=1)
    area.append(bytes(20_000), key=KEY._replace(user="other"))


def test_a_commit_needs_room_for_its_rows(area: Area) -> None:
    area.append(b"one")
    (piece,) = [piece for _, piece in area.stages.chosen(KEY, 0, [(0, 1, 1)])]
    area.stages.check_commit(KEY, 0, [piece])
    area.stages.room = Room(floor=2**62)
    with pytest.raises(Refusal, match="cannot commit batch 0 of publisher 'p': its rows take 3"):
        area.stages.check_commit(KEY, 0, [piece])


def test_commits_are_one_after_the_other(area: Area) -> None:
    woken: list[str] = []
    first, second = object(), object()
    assert area.stages.begin(first, lambda: woken.append("first"))
    assert not area.stages.begin(second, lambda: woken.append("second"))
    assert area.stages.begin(first, lambda: woken.append("first"))
    area.stages.end(second)
    assert woken == []
    area.stages.end(first)
    assert woken == ["second"]
    assert area.stages.begin(second, lambda: woken.append("second"))


def test_batches_are_bounded_for_each_user(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "STAGES_COUNT", 4)
    area = Area(files)
    area.append(b"one", rows=10)
    with pytest.raises(Refusal, match=r"cannot stage batch 1 .* one user may have 1: commit or"):
        area.append(b"two", batch=1)
    area.stages.shares.check("another")
    area.stages.drop(KEY, 0)
    area.append(b"two", batch=1)


def test_a_full_disk_refuses_a_piece_and_keeps_the_others() -> None:
    disk = SimDisk(capacity=4096)
    area = Area(disk)
    area.append(b"one")
    with pytest.raises(Refusal, match=r"cannot stage 100000 bytes more of batch 0 .* are free"):
        area.append(bytes(100_000), number=1)
    assert area.read((0, 1, 1)) == [(0, b"one")]


def test_octets_that_the_disk_has_changed_are_not_published(tmp_path: Path) -> None:
    area = Area(OsFiles(str(tmp_path)))
    area.append(b"one")
    (path,) = (tmp_path / DIRECTORY).iterdir()
    path.write_bytes(b"oxe")
    with pytest.raises(Refusal, match="the disk has damaged batch 0 of publisher 'p'; send"):
        area.read((0, 1, 1))
