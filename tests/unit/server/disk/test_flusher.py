"""The flusher: one batch at a time, tried again on a full disk, never confirmed when it failed."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from harebell.base.gauge import Gauge
from harebell.base.ports import Commit
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.server.disk import flusher
from harebell.server.disk.flusher import Flusher
from tests.patience import SECONDS


class Work:
    """Writes and syncs of a file that need nobody else."""

    def __init__(
        self, file: int, path: Path, octets: bytes, *, sync: int = -1, unsynced: bool = False
    ) -> None:
        self.writes = [(file, octets, 0)]
        self.syncs = [] if unsynced else [file if sync < 0 else sync]
        self.unsynced = unsynced
        self.paths = [str(path)]
        self.creates: dict[int, str] = {}
        self.last: list[int] = []
        self.opened: dict[int, int] = {}

    def adopt(self, opened: dict[int, int]) -> None:
        self.opened.update(opened)


class ByHand:
    """A batch whose outcomes are given; it does not end before it may."""

    def __init__(self, ticket: int, outcomes: list[Any]) -> None:
        self.ticket = ticket
        self.records = 0
        self.stalled: OSError | None = None
        self.failed: Exception | None = None
        self.may_end = threading.Event()
        self.performed = 0
        self.removals: list[RemovalByHand] = []
        self.thread: threading.Thread | None = None
        self.work: Work | None = None
        self.small = True
        self.byte_count = 0
        self._outcomes = outcomes

    def direct(self) -> Work | None:
        return self.work

    def is_small(self, byte_count: int) -> bool:
        assert byte_count > 0
        return self.small

    def perform(self, *, removing: bool = True) -> None:
        self.may_end.wait(SECONDS)
        self.thread = threading.current_thread()
        self.performed += 1
        outcome = self._outcomes.pop(0) if self._outcomes else None
        self.stalled = outcome if isinstance(outcome, OSError) else None
        self.failed = outcome if isinstance(outcome, ValueError) else None


class RemovalByHand:
    """A removal that does not end before it may."""

    def __init__(self, done: list[int], number: int, *outcomes: Any) -> None:
        self.stalled: OSError | None = None
        self.failed: Exception | None = None
        self.may_end = threading.Event()
        self.begun = threading.Event()
        self._done = done
        self._number = number
        self._outcomes = [*outcomes]

    def perform(self) -> None:
        self.begun.set()
        self.may_end.wait(SECONDS)
        outcome = self._outcomes.pop(0) if self._outcomes else None
        self.stalled = outcome if isinstance(outcome, OSError) else None
        self.failed = outcome if isinstance(outcome, ValueError) else None
        if outcome is None:
            self._done.append(self._number)


class ServerByHand:
    """A server that answers when it may, and has something to tidy when it is told so."""

    def __init__(self) -> None:
        self.answer: bool | None = True
        self.has_connection = True
        self.sent = 0
        self.is_untidy = False
        self.tidies = threading.Event()
        self.may_tidy = threading.Event()
        self.may_tidy.set()
        self._reading, self._writing = os.pipe()

    def send(self) -> int:
        if not self.has_connection:
            return -1
        self.sent += 1
        return self._reading

    def may_answer(self) -> None:
        os.write(self._writing, b".")

    def answered(self) -> bool | None:
        os.read(self._reading, 1)
        return self.answer

    def untidy(self) -> bool:
        return self.is_untidy

    def tidy(self) -> None:
        self.is_untidy = False
        self.tidies.set()
        self.may_tidy.wait(SECONDS)

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)


class Gatherer(Commit):
    """A group commit of nothing but numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = False
        self.records = 0
        self.batches: list[ByHand] = []
        self.outcomes: list[Any] = []
        self.held = False
        self.work: Work | None = None

    def gather(self) -> ByHand | None:
        if not (self.urgent or self.waiting):
            return None
        self.urgent = self.waiting = False
        batch = ByHand(self.ticket, self.outcomes)
        batch.work = self.work
        self.ticket += 1
        self.batches.append(batch)
        if not self.held:
            batch.may_end.set()
        return batch

    def finish(self, batch: ByHand) -> None:
        self.done = batch.ticket


class Setting:
    """A flusher and everything around it."""

    def __init__(
        self,
        after: Callable[[], None] = lambda: None,
        spare: Callable[[], bool] = lambda: False,
        remote: ServerByHand | None = None,
    ) -> None:
        self.commit = Gatherer()
        self.registry = ConnectionRegistry(Gauge())
        self.lines: list[str] = []
        self.failures: list[Exception] = []
        self.definitions_changed = False
        self.sync_in: float | None = None
        self.flusher = Flusher(
            asyncio.get_running_loop(),
            self.commit,
            self.registry,
            gathered=lambda: self.definitions_changed,
            after=after,
            sync_in=lambda: self.sync_in,
            log=lambda level, text: self.lines.append(f"{level}: {text}"),
            failed=self.failures.append,
            flush=lambda: None,
            spare=spare,
            remote=remote,
        )

    def urge(self) -> None:
        self.commit.urgent = True
        self.flusher.look()

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not happened():
                await asyncio.sleep(0.005)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def plain() -> None:
        asyncio.run(test())

    plain.__name__ = test.__name__
    return plain


class Waits:
    def __init__(self, registry: ConnectionRegistry) -> None:
        self.calls = 0
        registry.waiting[self] = None

    def committed(self) -> None:
        self.calls += 1


@run
async def test_what_somebody_waits_for_is_performed_in_the_thread_and_told() -> None:
    s = Setting()
    waits = Waits(s.registry)
    s.urge()
    await s.until(lambda: s.commit.done == 1)
    assert waits.calls == 1
    assert s.commit.batches[0].thread is not threading.main_thread()
    await s.flusher.stop()


@run
async def test_there_is_one_batch_at_a_time_and_the_next_follows_by_itself() -> None:
    s = Setting()
    s.commit.held = True
    s.urge()
    await s.until(lambda: len(s.commit.batches) == 1)
    for _ in range(3):
        s.urge()
        await asyncio.sleep(0.01)
    assert len(s.commit.batches) == 1
    s.commit.held = False
    s.commit.batches[0].may_end.set()
    await s.until(lambda: s.commit.done == 2)
    assert len(s.commit.batches) == 2
    await s.flusher.stop()


@run
async def test_what_nobody_waits_for_follows_within_a_moment() -> None:
    s = Setting()
    s.commit.waiting = True
    begun = time.monotonic()
    s.flusher.look()
    s.flusher.look()
    assert s.commit.batches == []
    await s.until(lambda: s.commit.done == 1)
    assert time.monotonic() - begun > 0.02
    assert len(s.commit.batches) == 1
    await s.flusher.stop()


@run
async def test_definitions_that_changed_are_looked_for_too() -> None:
    s = Setting()
    s.definitions_changed = True
    s.flusher.look()
    s.definitions_changed = False
    s.commit.waiting = True
    await s.until(lambda: s.commit.done == 1)
    await s.flusher.stop()


@run
async def test_a_full_disk_holds_publishers_back_until_it_takes_writes_again() -> None:
    s = Setting()
    s.commit.outcomes = [OSError(errno.ENOSPC, "full", "a.seg"), OSError(errno.ENOSPC, "full")]
    s.urge()
    await s.until(lambda: s.registry.short)
    assert s.registry.reason() == "low on disk"
    assert s.commit.done == 0
    await s.until(lambda: s.commit.done == 1)
    assert s.commit.batches[0].performed == 3
    assert not s.registry.short
    assert len(s.lines) == 2
    assert "cannot write, publishers wait: [Errno 28] full: 'a.seg'" in s.lines[0]
    assert s.lines[1] == "warning: the disk takes writes again"
    await s.flusher.stop()


@run
async def test_what_was_kept_for_a_full_disk_is_used_at_once_and_publishers_wait_on() -> None:
    kept = [True]
    s = Setting(spare=lambda: bool(kept and kept.pop()))
    s.commit.outcomes = [OSError(errno.ENOSPC, "full", "a.seg")]
    s.urge()
    await s.until(lambda: s.commit.done == 1)
    assert s.registry.short
    assert not kept
    assert s.lines == [
        "warning: the disk is full, what was kept for that is used: [Errno 28] full: 'a.seg'"
    ]
    assert s.flusher.set_low(False)
    assert not s.registry.short
    await s.flusher.stop()


@run
async def test_too_many_open_files_are_named_as_what_they_are() -> None:
    s = Setting(spare=lambda: True)
    s.commit.outcomes = [OSError(errno.EMFILE, "too many")]
    s.urge()
    await s.until(lambda: s.registry.short)
    assert s.registry.reason() == "low on file handles"
    await s.until(lambda: s.commit.done == 1)
    await s.flusher.stop()


@run
async def test_a_disk_that_is_full_and_low_is_both_until_neither() -> None:
    s = Setting()
    assert s.flusher.set_low(True)
    assert not s.flusher.set_low(True)
    s.commit.outcomes = [OSError(errno.EDQUOT, "quota")]
    s.urge()
    await s.until(lambda: s.commit.done == 1)
    assert s.registry.short
    assert s.flusher.set_low(False)
    assert not s.registry.short
    await s.flusher.stop()


@run
async def test_a_failed_batch_is_never_confirmed_and_nothing_after_it() -> None:
    s = Setting()
    waits = Waits(s.registry)
    s.commit.outcomes = [ValueError("sync failed")]
    s.urge()
    await s.until(lambda: len(s.failures) == 1)
    s.urge()
    await asyncio.sleep(0.05)
    assert str(s.failures[0]) == "sync failed"
    assert s.commit.done == 0
    assert waits.calls == 0
    assert len(s.commit.batches) == 1


@run
async def test_a_sync_that_fails_later_fails_the_batch() -> None:
    def after() -> None:
        raise OSError(errno.EIO, "broken", "a.seg")

    s = Setting(after)
    s.urge()
    await s.until(lambda: len(s.failures) == 1)
    assert s.commit.done == 0


@run
async def test_syncs_that_were_put_off_come_without_another_batch() -> None:
    synced: list[int] = []
    s = Setting(lambda: synced.append(s.commit.done))
    s.sync_in = 0.05
    s.urge()
    await s.until(lambda: s.commit.done == 1)
    s.sync_in = None
    await s.until(lambda: synced[:2] == [0, 1])
    assert len(s.commit.batches) == 1
    await s.flusher.stop()


@run
async def test_syncs_that_are_due_sooner_do_not_wait_for_those_that_are_due_later() -> None:
    synced: list[int] = []
    s = Setting(lambda: synced.append(s.commit.done))
    s.sync_in = 3600.0
    s.urge()
    await s.until(lambda: s.commit.done == 1)
    s.sync_in = 0.05
    s.urge()
    await s.until(lambda: s.commit.done == 2)
    s.sync_in = None
    await s.until(lambda: synced[:3] == [0, 1, 2])
    assert len(s.commit.batches) == 2
    await s.flusher.stop()


@run
async def test_draining_ends_when_everything_is_on_disk() -> None:
    s = Setting()
    s.commit.urgent = True
    assert await s.flusher.drain(SECONDS)
    assert s.commit.done == 1
    assert await s.flusher.drain(SECONDS)
    await s.flusher.stop()


@run
async def test_draining_waits_for_a_disk_that_is_only_slow() -> None:
    s = Setting()
    s.commit.held = s.commit.urgent = True
    draining = asyncio.create_task(s.flusher.drain(0.01))
    await s.until(lambda: bool(s.commit.batches))
    await asyncio.sleep(0.1)
    assert not draining.done()
    s.commit.batches[0].may_end.set()
    assert await draining
    assert s.commit.done == 1
    await s.flusher.stop()


@run
async def test_draining_gives_up_on_a_disk_that_stays_full() -> None:
    s = Setting()
    s.commit.outcomes = [OSError(errno.ENOSPC, "full")] * 1000
    s.commit.urgent = True
    assert not await s.flusher.drain(0.1)
    await s.flusher.stop()


@run
async def test_a_batch_that_is_only_writes_and_syncs_needs_no_python_thread() -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "a.seg"
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        s = Setting()
        s.commit.work = Work(file, path, b"records")
        for done in range(1, 4):
            s.urge()
            await s.until(lambda done=done: s.commit.done == done)  # type: ignore[misc]
        await s.flusher.stop()
        os.close(file)
        assert path.read_bytes() == b"records"
        assert [batch.performed for batch in s.commit.batches] == [0, 0, 0]


@run
async def test_rows_that_are_synced_later_are_written_and_no_sync_is_counted() -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "a.seg"
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        s = Setting()
        s.commit.work = Work(file, path, b"rows", unsynced=True)
        s.urge()
        await s.until(lambda: s.commit.done == 1)
        assert (s.flusher.writes, s.flusher.written, s.flusher.syncs.count) == (1, 4, 0)
        await s.flusher.stop()
        os.close(file)
        assert path.read_bytes() == b"rows"


@run
async def test_a_write_of_it_that_fails_is_left_to_who_can_wait_for_room() -> None:
    s = Setting()
    full = os.open("/dev/full", os.O_RDWR)
    s.commit.work = Work(full, Path("a.seg"), b"records")
    s.commit.outcomes = [OSError(errno.ENOSPC, "full", "a.seg")]
    s.urge()
    await s.until(lambda: s.registry.short)
    assert "cannot write, publishers wait" in s.lines[0]
    await s.until(lambda: s.commit.done == 1)
    assert s.commit.batches[0].performed == 2
    await s.flusher.stop()
    os.close(full)


@run
async def test_a_sync_of_it_that_fails_names_the_file_and_is_not_tried_again() -> None:
    with TemporaryDirectory() as directory:
        file = os.open(Path(directory) / "a.seg", os.O_RDWR | os.O_CREAT)
        reading, writing = os.pipe()
        s = Setting()
        waits = Waits(s.registry)
        s.commit.work = Work(file, Path("the/a.seg"), b"records", sync=writing)
        s.urge()
        await s.until(lambda: len(s.failures) == 1)
        assert str(s.failures[0]) == "[Errno 22] Invalid argument: 'the/a.seg'"
        assert (s.commit.done, waits.calls) == (0, 0)
        assert s.commit.batches[0].performed == 0
        for each in (file, reading, writing):
            os.close(each)


@run
async def test_it_goes_the_long_way_while_syncs_are_put_off() -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "a.seg"
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        s = Setting()
        s.commit.work = Work(file, path, b"records")
        s.sync_in = 3600.0
        s.urge()
        await s.until(lambda: s.commit.done == 1)
        assert s.commit.batches[0].performed == 1
        s.sync_in = None
        await s.flusher.stop()
        os.close(file)


@run
async def test_a_batch_waits_for_few_messages_no_longer_than_a_commit_takes() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flusher, "GATHER_SECONDS", SECONDS)
        s = Setting()
        s.commit.records = 3
        s.urge()
        await s.until(lambda: s.commit.done == 1)
        assert len(s.commit.batches) == 1
        s.commit.records = 1
        s.urge()
        began = time.monotonic()
        await s.until(lambda: len(s.commit.batches) == 2)
        assert time.monotonic() - began < SECONDS / 2
        await s.flusher.stop()


@run
async def test_a_batch_waits_for_a_window_of_messages_longer_than_a_commit_takes() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flusher, "GATHER_SECONDS", 0.2)
        s = Setting()
        s.commit.records = 100
        s.urge()
        await s.until(lambda: s.commit.done == 1)
        s.commit.records = 1
        began = time.monotonic()
        s.urge()
        await s.until(lambda: len(s.commit.batches) == 2)
        assert time.monotonic() - began > 0.1
        await s.flusher.stop()


@run
async def test_nobody_waits_for_the_removal_of_segments() -> None:
    s = Setting()
    s.commit.held = True
    done: list[int] = []
    removals = [RemovalByHand(done, number) for number in range(3)]
    s.urge()
    await s.until(lambda: len(s.commit.batches) == 1)
    s.commit.batches[0].removals = removals
    s.commit.batches[0].may_end.set()
    await s.until(lambda: s.commit.done == 1)
    assert await asyncio.to_thread(removals[0].begun.wait, SECONDS)
    # A batch that comes meanwhile is performed before the next segment is removed.
    s.urge()
    await s.until(lambda: len(s.commit.batches) == 2)
    removals[0].may_end.set()
    await s.until(lambda: done == [0])
    assert not removals[1].begun.is_set()
    s.commit.batches[1].may_end.set()
    await s.until(lambda: s.commit.done == 2)
    removals[1].may_end.set()
    removals[2].may_end.set()
    await s.until(lambda: done == [0, 1, 2])
    await s.flusher.stop()


@run
async def test_segments_that_wait_are_removed_before_the_thread_ends() -> None:
    s = Setting()
    s.commit.held = True
    done: list[int] = []
    removals = [RemovalByHand(done, number) for number in range(3)]
    s.urge()
    await s.until(lambda: len(s.commit.batches) == 1)
    s.commit.batches[0].removals = removals
    s.commit.batches[0].may_end.set()
    await s.until(lambda: s.commit.done == 1)
    for removal in removals:
        removal.may_end.set()
    await s.flusher.stop()
    assert done == [0, 1, 2]


@run
async def test_a_removal_that_cannot_be_done_for_now_holds_up_those_behind_it_alone() -> None:
    s = Setting()
    s.commit.held = True
    done: list[int] = []
    full = OSError(errno.EMFILE, "too many open files")
    removals = [RemovalByHand(done, 0, full), RemovalByHand(done, 1)]
    for removal in removals:
        removal.may_end.set()
    s.urge()
    await s.until(lambda: len(s.commit.batches) == 1)
    s.commit.batches[0].removals = removals
    s.commit.batches[0].may_end.set()
    await s.until(lambda: removals[0].begun.is_set() and s.commit.done == 1)
    s.commit.held = False
    s.urge()
    await s.until(lambda: s.commit.done == 2)
    await s.until(lambda: done == [0, 1])
    assert not s.failures
    await s.flusher.stop()


@run
async def test_a_removal_that_fails_ends_the_broker() -> None:
    s = Setting()
    s.commit.held = True
    error = ValueError("the sync of a directory failed")
    removal = RemovalByHand([], 0, error)
    removal.may_end.set()
    s.urge()
    await s.until(lambda: len(s.commit.batches) == 1)
    s.commit.batches[0].removals = [removal]
    s.commit.batches[0].may_end.set()
    await s.until(lambda: s.failures == [error])


# --- a store on a server --------------------------------------------------------------------------


@run
async def test_a_small_batch_is_sent_to_a_server_without_the_thread() -> None:
    server = ServerByHand()
    s = Setting(remote=server)
    waits = Waits(s.registry)
    for done in range(1, 4):
        s.urge()
        await s.until(lambda done=done: server.sent == done)  # type: ignore[misc]
        await asyncio.sleep(0.01)
        assert (s.commit.done, waits.calls) == (done - 1, min(done - 1, 1))
        server.may_answer()
        await s.until(lambda done=done: s.commit.done == done)  # type: ignore[misc]
    assert {batch.thread for batch in s.commit.batches} == {threading.main_thread()}
    await s.flusher.stop()
    server.close()


@run
async def test_an_answer_that_is_not_complete_is_waited_for() -> None:
    server = ServerByHand()
    server.answer = None
    s = Setting(remote=server)
    s.urge()
    await s.until(lambda: server.sent == 1)
    server.may_answer()
    await asyncio.sleep(0.02)
    assert s.commit.done == 0
    server.answer = True
    server.may_answer()
    await s.until(lambda: s.commit.done == 1)
    await s.flusher.stop()
    server.close()


@run
async def test_what_was_not_committed_for_sure_is_left_to_the_thread() -> None:
    appended: list[threading.Thread] = []
    server = ServerByHand()
    server.answer = False
    s = Setting(lambda: appended.append(threading.current_thread()), remote=server)
    s.urge()
    await s.until(lambda: server.sent == 1)
    server.may_answer()
    await s.until(lambda: s.commit.done == 1)
    assert len(appended) == 1
    assert appended[0] is not threading.main_thread()
    await s.flusher.stop()
    server.close()


@run
async def test_a_large_batch_and_one_without_a_connection_go_to_the_thread() -> None:
    server = ServerByHand()
    s = Setting(remote=server)
    server.has_connection = False
    s.urge()
    await s.until(lambda: s.commit.done == 1)
    server.has_connection = True
    gather = s.commit.gather

    def large() -> ByHand | None:
        batch = gather()
        if batch is not None:
            batch.small = False
        return batch

    s.commit.gather = large  # type: ignore[method-assign]
    s.urge()
    await s.until(lambda: s.commit.done == 2)
    assert server.sent == 0
    assert s.commit.batches[1].thread is not threading.main_thread()
    await s.flusher.stop()
    server.close()


@run
async def test_a_batch_waits_for_no_more_messages_after_one_of_many_bytes() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flusher, "GATHER_SECONDS", SECONDS)
        server = ServerByHand()
        s = Setting(remote=server)
        s.commit.records = 100
        s.urge()
        await s.until(lambda: server.sent == 1)
        s.commit.batches[0].records = 100
        s.commit.batches[0].byte_count = 1_000_000
        server.may_answer()
        await s.until(lambda: s.commit.done == 1)
        s.commit.records = 1
        s.urge()
        await s.until(lambda: server.sent == 2)
        server.may_answer()
        await s.until(lambda: s.commit.done == 2)
        await s.flusher.stop()
        server.close()


@run
async def test_the_thread_tidies_up_when_all_is_confirmed_and_batches_wait_for_it() -> None:
    server = ServerByHand()
    server.is_untidy = True
    server.may_tidy.clear()
    s = Setting(remote=server)
    s.urge()
    await s.until(lambda: server.sent == 1)
    server.may_answer()
    await s.until(lambda: s.commit.done == 1)
    await s.until(server.tidies.is_set)
    s.urge()
    await asyncio.sleep(0.02)
    assert (server.sent, s.commit.done) == (1, 1)
    server.may_tidy.set()
    await s.until(lambda: s.commit.done == 2)
    s.urge()
    await s.until(lambda: server.sent == 2)
    server.may_answer()
    await s.until(lambda: s.commit.done == 3)
    await s.flusher.stop()
    server.close()


@run
async def test_a_connection_that_ends_while_nothing_is_sent_is_not_watched_any_more() -> None:
    server = ServerByHand()
    s = Setting(remote=server)
    s.urge()
    await s.until(lambda: server.sent == 1)
    server.may_answer()
    await s.until(lambda: s.commit.done == 1)
    server.may_answer()
    await asyncio.sleep(0.02)
    before = time.process_time()
    await asyncio.sleep(0.1)
    assert time.process_time() - before < 0.05
    await s.flusher.stop()
    server.close()


@run
async def test_a_batch_of_which_the_cache_takes_nothing_any_more_ends_the_broker() -> None:
    server = ServerByHand()
    s = Setting(remote=server)
    s.commit.outcomes = [ValueError("broken")]
    s.urge()
    await s.until(lambda: len(s.failures) == 1)
    assert (server.sent, s.commit.done) == (0, 0)
    server.close()


def test_a_batch_that_ends_after_the_event_loop_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    died: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda given: died.append(given.exc_value))
    performed: list[ByHand] = []

    async def stopped_meanwhile() -> None:
        s = Setting()
        s.commit.held = True
        s.urge()
        await s.until(lambda: len(s.commit.batches) == 1)
        await s.flusher.stop()
        performed.extend(s.commit.batches)

    asyncio.run(stopped_meanwhile())
    threads = [each for each in threading.enumerate() if each.name == "flusher"]
    performed[0].may_end.set()
    until = time.monotonic() + SECONDS
    while performed[0].performed == 0 and time.monotonic() < until:
        time.sleep(0.005)
    for thread in threads:
        # It goes on waiting for batches, unless it has died.
        thread.join(0.05)
    assert performed[0].performed == 1
    assert died == []
