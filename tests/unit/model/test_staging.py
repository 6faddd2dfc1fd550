"""The staging area: resuming, what survives a restart or a damaged disk, and what goes when."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.osfs import OsFiles
from harebell.base.ports import Commit, Files
from harebell.base.timers import Timers
from harebell.model import staging
from harebell.model.limits import STAGED_CHUNK_BYTES, STAGED_KEEP_SECONDS
from harebell.model.staging import DIRECTORY, Staging
from harebell.store.memory_files import MemoryFiles
from tests.sim.disk import SimDisk, error

KEY = ("/", "guest", "report.pdf")
RAW = b"\x80\0\x03a/b"
BODY = random.Random(7).randbytes(3 * STAGED_CHUNK_BYTES + 77)


class Area:
    """A staging area with its clock and its commit."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.clock = Clock(1_000_000)
        self.commit = Commit()
        self.timers = Timers(self.clock)
        self.staging = Staging(files, self.clock, self.timers, self.commit)

    def pass_time(self, seconds: float) -> None:
        """Let the clock run, and whoever waits for it."""
        self.clock.advance(round(seconds * 1000))
        self.timers.run()

    def stage(self, body: bytes = BODY, size: int = len(BODY), key: staging.Key = KEY) -> None:
        """Stage so much of a file, and let go of it."""
        staged = self.staging.open(key, size, self)
        self.staging.describe(staged, RAW)
        for at in range(staged.staged, len(body), 10_000):
            self.staging.write(staged, body[at : min(at + 10_000, len(body))])
        self.staging.release(staged)


@pytest.fixture(params=["memory", "disk"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return MemoryFiles() if request.param == "memory" else OsFiles(str(tmp_path))


@pytest.fixture
def area(files: Files) -> Area:
    return Area(files)


def test_a_staged_file_comes_back_as_it_was_sent(area: Area):
    area.stage()
    found = area.staging.find(KEY)
    assert found is not None
    assert found.whole
    assert found.properties == RAW
    assert area.staging.body(found) == BODY


def test_a_file_of_no_octets_is_whole_when_its_properties_are_there(area: Area):
    holder = object()
    staged = area.staging.open(KEY, 0, holder)
    assert not staged.whole
    area.staging.describe(staged, RAW)
    assert staged.whole
    assert staged.holder is holder
    assert area.staging.body(staged) == b""


def test_a_client_that_comes_again_goes_on_where_it_broke_off(area: Area):
    area.stage(BODY[:100_000])
    staged = area.staging.open(KEY, len(BODY), area)
    assert staged.staged == 100_000
    area.staging.release(staged)
    area.stage()
    found = area.staging.find(KEY)
    assert found is not None
    assert area.staging.body(found) == BODY


def test_a_restart_in_between_changes_nothing(area: Area):
    area.stage(BODY[:100_000])
    after = Area(area.files)
    after.stage()
    last = Area(area.files).staging
    found = last.find(KEY)
    assert found is not None
    assert found.whole
    assert last.body(found) == BODY


def test_another_size_under_the_same_name_is_another_file(area: Area):
    area.stage(BODY[:500], 1_000)
    assert area.staging.open(KEY, 999, area).staged == 0
    assert len(area.staging) == 1


@pytest.mark.parametrize("place", range(3))
def test_another_vhost_user_or_identifier_is_another_file(area: Area, place: int):
    area.stage(BODY[:500], 1_000)
    other = list(KEY)
    other[place] = "other"
    assert area.staging.find((other[0], other[1], other[2])) is None


def test_names_that_look_alike_when_joined_are_kept_apart(area: Area):
    area.stage(b"one", 3, ("a", "bc", "d"))
    area.stage(b"two!", 4, ("ab", "c", "d"))
    found = area.staging.find(("a", "bc", "d"))
    assert found is not None
    assert area.staging.body(found) == b"one"


def test_a_newcomer_takes_a_file_over_from_who_held_it(area: Area):
    first, second = object(), object()
    staged = area.staging.open(KEY, 10, first)
    area.staging.write(staged, b"abc")
    again = area.staging.open(KEY, 10, second)
    assert again is staged
    assert (staged.holder, staged.staged) == (second, 3)


def test_a_waiting_client_is_called_when_the_holder_of_a_file_lets_go(area: Area):
    staged = area.staging.open(KEY, 3, area)
    area.staging.describe(staged, RAW)
    seen: list[bool] = []
    staged.waiting.append(lambda: seen.append(staged.whole))
    area.staging.write(staged, b"abc")
    assert seen == []
    area.staging.release(staged)
    assert seen == [True]


def test_a_published_file_goes_when_its_message_is_on_disk(area: Area):
    area.stage()
    found = area.staging.find(KEY)
    assert found is not None
    area.staging.published(found)
    assert area.staging.find(KEY) is None
    area.pass_time(5)
    assert area.files.names(DIRECTORY), "its message is not safe yet"
    area.commit.done = area.commit.ticket
    area.pass_time(5)
    assert area.files.names(DIRECTORY) == []


def test_a_file_published_and_staged_again_is_not_removed(area: Area):
    area.stage()
    found = area.staging.find(KEY)
    assert found is not None
    area.staging.published(found)
    area.stage(BODY[:500], 1_000)
    area.commit.done = area.commit.ticket
    area.pass_time(5)
    again = area.staging.find(KEY)
    assert again is not None
    assert again.staged == 500
    assert len(area.files.names(DIRECTORY)) == 1


def test_an_abandoned_batch_is_removed_in_time(area: Area):
    area.stage(BODY[:500], 1_000)
    area.pass_time(STAGED_KEEP_SECONDS - 10)
    assert len(area.staging) == 1
    area.pass_time(20)
    assert len(area.staging) == 0
    assert area.files.names(DIRECTORY) == []


def test_a_batch_touched_meanwhile_stays(area: Area):
    area.stage(BODY[:500], 1_000)
    area.pass_time(STAGED_KEEP_SECONDS - 10)
    area.stage(BODY[:600], 1_000)
    area.pass_time(20)
    assert len(area.staging) == 1
    area.pass_time(STAGED_KEEP_SECONDS)
    assert len(area.staging) == 0


def test_a_held_batch_stays_however_long_it_takes(area: Area):
    area.staging.open(KEY, 10, area)
    for _ in range(3):
        area.pass_time(STAGED_KEEP_SECONDS)
    assert len(area.staging) == 1


def test_batches_from_before_the_start_go_in_time_too(area: Area):
    area.stage(BODY[:500], 1_000)
    after = Area(area.files)
    after.pass_time(STAGED_KEEP_SECONDS + 1)
    assert area.files.names(DIRECTORY) == []


def test_batches_staged_in_a_vhost_go_with_it(area: Area):
    area.stage(b"a", 1, ("gone", "guest", "id"))
    area.stage(b"a", 1, ("kept", "guest", "id"))
    area.staging.vhost_gone("gone")
    assert area.staging.find(("gone", "guest", "id")) is None
    assert area.staging.find(("kept", "guest", "id")) is not None
    assert len(area.files.names(DIRECTORY)) == 1


def test_there_is_a_limit_of_files_for_each_user(files: Files, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(staging, "STAGED_FILES_COUNT", 1)
    area = Area(files)
    area.stage(b"a", 1)
    with pytest.raises(Refusal, match=r"cannot stage 'more': .* one user may have 1: p") as caught:
        area.staging.open(("/", "guest", "more"), 1, area)
    assert caught.value.kind is ErrorKind.RESOURCE_ERROR
    area.staging.open(("/", "another", "more"), 1, area)


def test_one_user_may_stage_a_part_of_the_disk(area: Area):
    half = area.files.free() // 2
    area.staging.open(("/", "guest", "large"), half - 10, area)
    with pytest.raises(Refusal, match=r"cannot stage 'more': it has 11 bytes, .* one user may"):
        area.staging.open(("/", "guest", "more"), 11, area)
    area.staging.open(("/", "another", "more"), 11, area)
    area.staging.floor = area.files.free()
    with pytest.raises(Refusal, match=r"0 are free above disk_free_limit"):
        area.staging.open(("/", "third", "more"), 11, area)


def test_a_file_that_cannot_fit_is_refused_before_it_is_sent(area: Area):
    with pytest.raises(Refusal, match=r"cannot stage 'report\.pdf': it has"):
        area.staging.open(KEY, 1 << 62, area)


def test_octets_that_are_no_staged_file_are_removed_at_the_start(area: Area):
    area.files.make_directory(DIRECTORY)
    file = area.files.open(f"{DIRECTORY}/stray", create=True)
    file.write_at(b"HBSTAGE\x01 and then nothing that makes sense", 0)
    file.close()
    after = Area(area.files)
    assert len(after.staging) == 0
    assert area.files.names(DIRECTORY) == []


@pytest.mark.parametrize("at", [70_000, 66_000, 200_000, -1])
def test_damage_costs_what_follows_it_and_no_more(area: Area, at: int):
    area.stage()
    (name,) = area.files.names(DIRECTORY)
    file = area.files.open(f"{DIRECTORY}/{name}")
    at %= file.size()
    octet = file.read_at(1, at)
    file.write_at(bytes((octet[0] ^ 1,)), at)
    file.close()
    after = Area(area.files)
    found = after.staging.open(KEY, len(BODY), after)
    assert found.staged < len(BODY)
    assert found.staged > at - 2 * STAGED_CHUNK_BYTES
    rest = BODY[found.staged :]
    after.staging.describe(found, RAW)
    after.staging.write(found, rest)
    after.staging.release(found)
    assert after.staging.body(found) == BODY


def test_a_body_that_the_disk_lost_is_not_given_out(area: Area):
    area.stage()
    found = area.staging.find(KEY)
    assert found is not None
    (name,) = area.files.names(DIRECTORY)
    area.files.open(f"{DIRECTORY}/{name}").truncate(70_000)
    assert area.staging.body(found) is None


@pytest.mark.parametrize("seed", range(60))
def test_a_power_loss_leaves_the_beginning_of_what_was_sent(seed: int):
    rng = random.Random(seed)
    disk = SimDisk()
    area = Area(disk)
    sent = rng.randrange(len(BODY))
    area.stage(BODY[:sent])
    after = Area(disk.crash(rng))
    staged = after.staging.open(KEY, len(BODY), after)
    assert staged.staged <= sent
    after.staging.release(staged)
    after.stage()
    assert after.staging.body(staged) == BODY


def _full(number: int) -> Callable[[int, str, str], int | None]:
    def hook(index: int, operation: str, path: str) -> int | None:
        if operation == "write" and index >= number:
            raise error(errno.ENOSPC, path)
        return None

    return hook


def test_a_full_disk_is_told_and_what_came_before_counts():
    disk = SimDisk()
    area = Area(disk)
    staged = area.staging.open(KEY, len(BODY), area)
    area.staging.describe(staged, RAW)
    area.staging.write(staged, BODY[:STAGED_CHUNK_BYTES])
    disk.hook = _full(0)
    with pytest.raises(Refusal, match=r"cannot stage 'report\.pdf': No space left") as caught:
        area.staging.write(staged, BODY[STAGED_CHUNK_BYTES : 2 * STAGED_CHUNK_BYTES])
    assert caught.value.kind is ErrorKind.RESOURCE_ERROR
    assert staged.staged == STAGED_CHUNK_BYTES
    disk.hook = None
    area.staging.release(staged)
    area.stage()
    assert area.staging.body(staged) == BODY
