"""Group commit: what a batch does, in which order, and what becomes of one that cannot."""

from __future__ import annotations

import errno

import pytest

from harebell.store.limits import STAGE_UNSYNCED_SEGMENTS
from harebell.store.log.durable_log import DurableLog
from tests.sim.disk import Random, SimDisk
from tests.unit.store.stores import DIRECTORY, IDENTITY, Bench, message


def kinds(bench: Bench) -> list[str]:
    """Gathers what the disk is asked to do from now on."""
    asked: list[str] = []
    bench.disk.hook = lambda _number, kind, _path: asked.append(kind)
    return asked


def test_a_ticket_is_done_when_its_batch_is_finished() -> None:
    bench = Bench()
    commit = bench.store.commit
    log = bench.log()
    ticket = commit.ticket
    log.append(message())
    assert commit.urgent
    batch = commit.gather()
    assert batch is not None
    assert (commit.ticket, commit.urgent, commit.done) == (ticket + 1, False, 0)
    log.append(message())
    assert commit.gather() is None, "one batch at a time"
    batch.perform()
    commit.finish(batch)
    assert commit.done == ticket
    assert commit.urgent, "the second message waits for the next"


def test_commits_do_not_wait_for_settled_or_transient_messages() -> None:
    bench = Bench()
    log = bench.log()
    log.append(message(mode=1))
    assert (bench.store.commit.urgent, bench.store.commit.waiting) == (False, True)
    bench.commit()
    log.settle(0)
    assert (bench.store.commit.urgent, bench.store.commit.waiting) == (False, True)
    log.sync_soon()
    assert bench.store.commit.urgent


def test_waiting_clients_are_notified_even_when_there_is_nothing_to_do() -> None:
    bench = Bench()
    commit = bench.store.commit
    assert commit.gather() is None
    commit.urgent = True
    ticket = commit.ticket
    assert bench.commit() == 1
    assert commit.done == ticket


def test_a_batch_writes_definitions_then_records_then_syncs_then_removes() -> None:
    bench = Bench(segment_bytes=300)
    log = bench.log()
    for _ in range(8):
        log.append(message(bytes(100)))
    bench.commit()
    for position in range(3):
        log.settle(position)
    bench.definitions.put("queue", ("/", "q"), {})
    asked = kinds(bench)
    bench.commit()
    order = [kind for kind in asked if kind in ("transaction", "write", "sync", "remove")]
    assert order.index("write") < order.index("sync") < order.index("remove")
    assert asked[0] not in ("write", "sync", "remove")


def test_a_full_disk_stalls_a_batch_which_goes_on_later() -> None:
    bench = Bench()
    log = bench.log()
    log.append(message(b"one"))
    full = [True]

    def hook(_number: int, kind: str, path: str) -> None:
        if full[0] and kind == "write":
            raise OSError(errno.ENOSPC, "no space", path)

    bench.disk.hook = hook
    batch = bench.store.commit.gather()
    assert batch is not None
    batch.perform()
    assert batch.stalled is not None
    assert batch.failed is None
    full[0] = False
    batch.perform()
    assert batch.stalled is None
    bench.store.commit.finish(batch)
    assert bench.again().log().read(0).body == b"one"


@pytest.mark.parametrize(("together", "failing"), [(1 << 30, "sync"), (1, "sync_all")])
def test_a_failed_sync_fails_the_batch_for_good(together: int, failing: str) -> None:
    for number in (errno.EIO, errno.ENOSPC):
        bench = Bench()
        bench.disk.together = together
        bench.log().append(message())

        def hook(_number: int, kind: str, path: str, number: int = number) -> None:
            if kind == failing:
                raise OSError(number, "broken", path)

        bench.disk.hook = hook
        batch = bench.store.commit.gather()
        assert batch is not None
        batch.perform()
        assert isinstance(batch.failed, OSError)
        assert batch.failed.errno == number


def test_many_logs_are_synced_by_one_call() -> None:
    bench = Bench()
    bench.disk.together = 8
    asked: list[str] = []
    bench.disk.hook = lambda _number, kind, _path: asked.append(kind)
    for count, calls in ((3, ["sync"] * 3), (8, ["sync_all"])):
        logs = [bench.store.open_log(f"{count:016x}{n:016x}", durable=True) for n in range(count)]
        for log in logs:
            log.append(message())
        bench.commit()
        asked.clear()
        for log in logs:
            log.append(message())
        bench.commit()
        assert [kind for kind in asked if kind.startswith("sync")] == calls


def test_short_writes_are_continued() -> None:
    bench = Bench()
    log = bench.log()
    log.append(message(bytes(300)))
    bench.disk.hook = lambda _number, kind, _path: 7 if kind == "write" else None
    bench.commit()
    bench.disk.hook = None
    assert bench.again().log().read(0).body == bytes(300)


def test_a_deleted_log_leaves_no_file() -> None:
    bench = Bench()
    log = bench.log()
    log.append(message())
    bench.commit()
    assert bench.files()
    log.delete()
    bench.commit()
    assert bench.disk.names(DIRECTORY) == []
    assert IDENTITY not in bench.disk.names("queues")
    assert not bench.disk.handles
    assert list(bench.definitions.load("dropped")) == []
    assert bench.gauge.used == 0


def _few_handles(disk: SimDisk, limit: int) -> None:
    """Let the process have so many files open and no more."""

    def hook(_number: int, kind: str, path: str) -> None:
        if kind in ("open", "create", "sync_directory") and len(disk.handles) >= limit:
            raise OSError(errno.EMFILE, "too many open files", path)

    disk.hook = hook


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("joint", [False, True])
def test_a_batch_of_more_files_than_may_be_open_goes_on_by_itself(limit: int, joint: bool) -> None:
    bench = Bench()
    bench.disk.together = 1 << 30
    identities = [f"{number:032x}" for number in range(1, 9)]
    logs = [bench.store.open_log(identity, durable=True) for identity in identities]
    _few_handles(bench.disk, limit + joint)
    for turn in range(3):
        for log in logs:
            log.append(message(b"%d" % turn))
        bench.store.commit.joint = joint
        batch = bench.store.commit.gather()
        assert batch is not None
        batch.perform()
        assert (batch.stalled, batch.failed) == (None, None)
        bench.store.commit.finish(batch)
    bench.disk.hook = None
    again = bench.again()
    for identity in identities:
        log = again.store.open_log(identity, durable=True)
        found = [log.read(turn) for turn in range(3)]
        assert [each.body for each in found if each] == [b"0", b"1", b"2"]


def test_a_directory_that_cannot_be_opened_to_sync_it_is_waited_for() -> None:
    bench = Bench()
    bench.disk.together = 1 << 30
    bench.log().append(message(b"one"))
    batch = bench.store.commit.gather()
    assert batch is not None
    struck: list[str] = []

    def hook(_number: int, kind: str, path: str) -> None:
        if kind == "sync_directory" and len(struck) < 2:
            struck.append(path)
            raise OSError(errno.EMFILE, "too many open files", path)

    bench.disk.hook = hook
    batch.perform()
    assert (batch.stalled is None, batch.failed, len(struck)) == (False, None, 2)
    batch.perform()
    assert (batch.stalled, batch.failed) == (None, None)
    bench.store.commit.finish(batch)
    assert bench.again().log().read(0).body == b"one"


def test_a_commit_that_is_pinned_is_not_closed_and_who_waits_comes_first_afterwards() -> None:
    bench = Bench()
    commit = bench.store.commit
    log = bench.log()
    assert commit.pin()
    assert not commit.pin(), "one at a time"
    log.append(message())
    assert commit.urgent
    assert commit.gather() is None
    commit.unpin()
    assert not commit.pin(), "others have waited for the disk"
    bench.commit()
    assert commit.pin()
    commit.unpin()
    assert commit.pin(), "nobody waits"


def test_a_pin_that_is_refused_hurries_what_nobody_waits_for() -> None:
    bench = Bench()
    commit = bench.store.commit
    assert commit.pin()
    bench.log().append(message(mode=1))
    commit.unpin()
    assert not commit.urgent
    assert not commit.pin()
    assert commit.urgent


# --- rows of a staged batch -----------------------------------------------------------------------


def rows(bench: Bench, *bodies: bytes) -> DurableLog:
    """The log with rows of a batch, of which the first is committed as a whole."""
    log = bench.log()
    _stage(bench, log, b"the first")
    bench.commit()
    _stage(bench, log, *bodies)
    return log  # type: ignore[no-any-return]


def _stage(bench: Bench, log: DurableLog, *bodies: bytes) -> None:
    bench.store.commit.staging = 1
    for body in bodies:
        log.append(message(body))
    bench.store.commit.staging = 0


def synced(bench: Bench) -> int:
    """How many syncs one commit has."""
    asked = kinds(bench)
    batch = bench.store.commit.gather()
    assert batch is not None
    batch.perform()
    bench.store.commit.finish(batch)
    return asked.count("sync") + asked.count("sync_all")


def test_rows_of_a_batch_may_be_left_to_the_sync_of_a_later_commit() -> None:
    bench = Bench()
    rows(bench, b"one", b"two")
    bench.store.commit.unsynced = True
    assert synced(bench) == 0
    assert bench.store.commit.waiting, "the next commit syncs them"
    assert synced(bench) == 1
    assert bench.store.commit.gather() is None
    bodies = [bench.again().log().read(position).body for position in range(3)]
    assert bodies == [b"the first", b"one", b"two"]


def test_rows_are_synced_if_the_commit_has_anything_else_or_must_be_whole() -> None:
    def in_the_same_log(bench: Bench, log: DurableLog) -> None:
        log.append(message())

    def in_another_log(bench: Bench, log: DurableLog) -> None:
        bench.store.open_log("f" * 32, durable=True).append(message())

    def settled(bench: Bench, log: DurableLog) -> None:
        log.settle(0)

    def whole(bench: Bench, log: DurableLog) -> None:
        bench.store.commit.joint = True

    def not_asked(bench: Bench, log: DurableLog) -> None:
        bench.store.commit.unsynced = False

    for beside in (in_the_same_log, in_another_log, settled, whole, not_asked):
        bench = Bench()
        log = rows(bench, b"one")
        bench.store.commit.unsynced = True
        beside(bench, log)
        assert synced(bench) > 0, beside.__name__


def test_the_allowance_ends_with_its_commit() -> None:
    bench = Bench()
    log = rows(bench, b"one")
    bench.store.commit.unsynced = True
    synced(bench)
    _stage(bench, log, b"two")
    assert synced(bench) == 1


def _synced_paths(bench: Bench, kind: str = "sync") -> list[str]:
    """The paths that one commit syncs; a name for each directory with kind `sync_directory`."""
    paths: list[str] = []
    bench.disk.hook = lambda _number, each, path: paths.append(path) if each == kind else None
    batch = bench.store.commit.gather()
    assert batch is not None
    batch.perform()
    assert batch.failed is None, batch.failed
    bench.store.commit.finish(batch)
    bench.disk.hook = None
    return paths


def test_rows_that_fill_a_segment_are_left_unsynced_with_those_in_the_next_one() -> None:
    bench = Bench(segment_bytes=600)
    bench.disk.together = 8
    log = rows(bench, bytes(600))
    for body in (b"the second segment", bytes(600), b"the third segment"):
        bench.store.commit.unsynced = True
        assert synced(bench) == 0
        _stage(bench, log, body)
    log.append(message(b"is confirmed"))
    assert len(log.segments) == 3
    assert _synced_paths(bench) == [segment.path for segment in log.segments]
    assert bench.store.commit.gather() is None
    bodies = [bench.again().log().read(position).body for position in range(6)]
    assert bodies[0] == b"the first"
    assert bodies[-2:] == [b"the third segment", b"is confirmed"]


def test_files_that_were_made_for_unsynced_rows_get_their_names_synced_with_them() -> None:
    bench = Bench(segment_bytes=600)
    bench.disk.together = 8
    log = rows(bench, bytes(600))
    bench.store.commit.unsynced = True
    synced(bench)
    _stage(bench, log, b"the second segment")
    bench.store.commit.unsynced = True
    assert synced(bench) == 0
    assert _synced_paths(bench, "sync_directory") == [DIRECTORY, "queues"]
    for seed in range(20):
        assert Bench(bench.disk.crash(Random(f"names {seed}"))).log().end() == 3


def test_rows_are_synced_when_a_new_segment_says_more_of_what_was_handed_out() -> None:
    bench = Bench(segment_bytes=600)
    log = rows(bench, bytes(600))
    log.see(1)
    bench.commit()
    _stage(bench, log, b"the second segment")
    bench.store.commit.unsynced = True
    assert synced(bench) > 0, "the mark in its header must be on disk before it is relied on"


def test_not_many_segments_stay_unsynced() -> None:
    bench = Bench(segment_bytes=600)
    log = rows(bench, bytes(600))
    commits = 0
    while True:
        bench.store.commit.unsynced = True
        commits += 1
        if synced(bench):
            break
        _stage(bench, log, bytes(600))
    assert commits == STAGE_UNSYNCED_SEGMENTS + 1


def test_a_log_with_unsynced_rows_is_synced_by_the_next_commit_also_if_it_got_no_more() -> None:
    bench = Bench()
    log = rows(bench, b"one")
    other = bench.store.open_log("f" * 32, durable=True)
    _stage(bench, other, b"the first of the other")
    bench.commit()
    _stage(bench, log, b"two")
    bench.store.commit.unsynced = True
    assert synced(bench) == 0
    _stage(bench, other, b"another")
    bench.store.commit.unsynced = True
    assert log.segments[0].path in _synced_paths(bench)


def test_a_log_that_is_deleted_with_unsynced_rows_is_forgotten() -> None:
    bench = Bench()
    log = rows(bench, b"one")
    bench.store.commit.unsynced = True
    assert synced(bench) == 0
    log.delete()
    bench.commit()
    assert bench.store.commit.gather() is None, "nothing is left to sync"


def test_rows_are_synced_before_the_redo_file_that_has_the_rows_behind_them() -> None:
    bench = Bench()
    log = rows(bench, b"one")
    bench.store.commit.unsynced = True
    assert synced(bench) == 0
    _stage(bench, log, b"two")
    # The first row in another log makes the commit one that must be whole.
    _stage(bench, bench.store.open_log("f" * 32, durable=True), b"the first of the other")
    bench.store.commit.unsynced = True
    done: list[tuple[str, str]] = []
    bench.disk.hook = lambda _number, kind, path: done.append((kind, path))
    bench.commit()
    assert done.index(("sync", log.segments[0].path)) < done.index(("write", "redo"))
