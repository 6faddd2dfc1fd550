"""The flusher: one batch at a time, tried again on a full disk, never confirmed when it failed."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.osfs import OsFiles
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.server.disk import flusher
from harebell.server.disk.flusher import Flusher
from harebell.server.limits import FLUSH_SECONDS, GATHER_BYTES
from harebell.store.disk import DiskStore
from harebell.store.log.log_index import is_index
from tests.patience import SECONDS, eventually, reached
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk, error
from tests.unit.store.stores import DIRECTORY, IDENTITY, NOW, message


class ServerByHand:
    """A database that answers when it may, and has something to clean when it is told so."""

    def __init__(self) -> None:
        self.answer: bool | None = True
        self.has_connection = True
        self.sent = 0
        self.is_dirty = False
        self.cleans = threading.Event()
        self.may_clean = threading.Event()
        self.may_clean.set()
        self.descriptor, self._writing = os.pipe()

    def send(self) -> int:
        if not self.has_connection:
            return -1
        self.sent += 1
        return self.descriptor

    def may_answer(self) -> None:
        os.write(self._writing, b".")

    def answered(self) -> bool | None:
        os.read(self.descriptor, 1)
        return self.answer

    def needs_cleaning(self) -> bool:
        return self.is_dirty

    def clean(self) -> None:
        self.is_dirty = False
        self.cleans.set()
        self.may_clean.wait(SECONDS)

    def close(self) -> None:
        os.close(self.descriptor)
        os.close(self._writing)


class Setting:
    """A flusher with a store whose disk waits and fails on demand, and with one confirm that waits.

    Attributes:
        operations: the kinds of operations of the disk, and the threads that did them.
        confirmed: how often the confirm was released.
    """

    def __init__(
        self,
        directory: str = "",
        *,
        after: Callable[[], None] = lambda: None,
        spare: Callable[[], bool] = lambda: False,
        remote: ServerByHand | None = None,
    ) -> None:
        self.disk = SimDisk()
        self.definitions = SimDefinitions(self.disk)
        store = DiskStore(
            OsFiles(directory, clock=self._clock) if directory else self.disk,
            *(self.definitions, Gauge(), Clock(NOW), Random(7).randbytes),
            report=lambda *_: None,
            segment_bytes=2048,
        )
        self.log: Any = store.open_log(IDENTITY, durable=True)
        self.commit = store.commit
        self.registry = ConnectionRegistry(Gauge())
        self.registry.waiting[self] = None
        self.confirmed = 0
        self.lines: list[str] = []
        self.failures: list[Exception] = []
        self.sync_in: float | None = None
        self.operations: list[tuple[str, threading.Thread]] = []
        self._fails: dict[str, list[OSError]] = {}
        self._holds: dict[str, threading.Semaphore] = {}
        self.disk.hook = self._step
        self.flusher = Flusher(
            asyncio.get_running_loop(),
            self.commit,
            self.registry,
            definitions=self.definitions,
            after=after,
            sync_in=lambda: self.sync_in,
            log=lambda level, text: self.lines.append(f"{level}: {text}"),
            failed=self.failures.append,
            flush=lambda: None,
            spare=spare,
            remote=remote,
        )

    def _clock(self) -> float:
        """A clock that the Python thread reads where it syncs a real disk."""
        self.operations.append(("sync", threading.current_thread()))
        return 0.0

    def _step(self, number: int, kind: str, path: str) -> None:
        if is_index(path):
            # The index of a segment goes with it, and nothing waits for it or depends on it.
            return
        self.operations.append((kind, threading.current_thread()))
        if kind in self._holds:
            self._holds[kind].acquire(timeout=SECONDS)
        if self._fails.get(kind):
            raise self._fails[kind].pop(0)

    def hold(self, kind: str) -> None:
        """From now on operations of this kind wait until they are let go on."""
        self._holds[kind] = threading.Semaphore(0)

    def let(self, kind: str, count: int = 1_000) -> None:
        self._holds[kind].release(count)

    def fail(self, kind: str, number: int) -> None:
        """The next operation of this kind fails."""
        self._fails.setdefault(kind, []).append(error(number, "a.seg"))

    def count(self, kind: str) -> int:
        return sum(each == kind for each, _ in self.operations)

    def committed(self) -> None:
        self.confirmed += 1
        self.registry.waiting[self] = None  # it waits for the next one

    @property
    def gathered(self) -> int:
        """How many batches were gathered."""
        return self.commit.ticket - 1

    def publish(self, body: bytes = b"body") -> None:
        """Append a message whose confirm waits for a commit."""
        self.log.append(message(body))
        self.commit.urgent = True
        self.flusher.look()

    async def commits(self, body: bytes = b"body") -> None:
        """Publish, and wait until it is confirmed."""
        ticket = self.commit.ticket
        self.publish(body)
        await reached(lambda: self.commit.done == ticket)

    async def settle_segments(self, count: int) -> None:
        """Fill segments, and let a commit leave so many of them to be removed."""
        for _ in range(count + 1):
            await self.commits(bytes(2048))
        self._settled = self.disk.names(DIRECTORY)[:count]
        self.hold("remove")
        self.log.settle_range(0, count)
        await self.commits()

    def are_removed(self) -> bool:
        """Whether the segments that `settle_segments` left are gone."""
        return not {*self._settled} & {*self.disk.names(DIRECTORY)}


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def plain() -> None:
        asyncio.run(test())

    plain.__name__ = test.__name__
    return plain


@run
async def test_a_batch_that_clients_wait_for_is_performed_in_the_thread_and_they_are_notified() -> (
    None
):
    s = Setting()
    await s.commits()
    assert s.confirmed == 1
    assert threading.main_thread() not in {thread for _, thread in s.operations}
    assert len(s.disk.names(DIRECTORY)) == 1
    await s.flusher.stop()


@run
async def test_there_is_one_batch_at_a_time_and_the_next_follows_by_itself() -> None:
    s = Setting()
    s.hold("write")
    s.publish()
    await reached(lambda: s.count("write") == 1)
    for _ in range(3):
        s.publish()
        await asyncio.sleep(0.01)
    assert s.gathered == 1
    s.let("write")
    await reached(lambda: s.commit.done == 2)
    assert s.gathered == 2
    await s.flusher.stop()


@run
async def test_a_batch_that_no_client_waits_for_follows_within_a_moment() -> None:
    s = Setting()
    await s.commits()
    s.log.settle(0)
    begun = time.monotonic()
    s.flusher.look()
    s.flusher.look()
    assert s.gathered == 1
    await reached(lambda: s.commit.done == 2)
    assert time.monotonic() - begun > 0.02
    assert s.gathered == 2
    await s.flusher.stop()


@run
async def test_a_batch_in_between_does_not_keep_the_next_one_that_no_client_waits_for() -> None:
    s = Setting()
    await s.commits(b"first")
    s.log.settle(0)
    s.flusher.look()
    await s.commits(b"second")
    assert (s.commit.done, s.gathered) == (2, 2), "it has what no client waited for, too"
    begun = time.monotonic()
    s.log.settle(1)
    s.flusher.look()
    await reached(lambda: s.commit.done == 3)
    assert time.monotonic() - begun > FLUSH_SECONDS / 2, "its time begins with itself"
    assert s.gathered == 3
    await s.flusher.stop()


@run
async def test_definitions_that_changed_are_looked_for_too() -> None:
    s = Setting()
    s.definitions.put("queue", ("/", "q"), {})
    s.flusher.look()
    await reached(lambda: s.commit.done == 1)
    assert [*s.definitions.load("queue")] == [(("/", "q"), {})]
    await s.flusher.stop()


@run
async def test_a_full_disk_holds_publishers_back_until_it_takes_writes_again() -> None:
    s = Setting()
    for _ in range(2):
        s.fail("write", errno.ENOSPC)
    s.publish()
    await reached(lambda: s.registry.publishers.short)
    assert s.registry.publishers.reason() == "low on disk"
    assert s.commit.done == 0
    await reached(lambda: s.commit.done == 1)
    assert s.count("write") == 3
    assert not s.registry.publishers.short
    assert s.lines == [
        "error: cannot write, publishers wait: [Errno 28] No space left on device: 'a.seg'",
        "warning: the disk takes writes again",
    ]
    await s.flusher.stop()


@run
async def test_room_kept_for_a_full_disk_is_used_at_once_and_publishers_wait_on() -> None:
    kept = [True]
    s = Setting(spare=lambda: bool(kept and kept.pop()))
    s.fail("write", errno.ENOSPC)
    await s.commits()
    assert s.registry.publishers.short
    assert not kept
    assert s.lines == [
        "warning: the disk is full, what was kept for that is used: "
        "[Errno 28] No space left on device: 'a.seg'"
    ]
    assert s.flusher.set_low(False)
    assert not s.registry.publishers.short
    await s.flusher.stop()


@run
async def test_too_many_open_files_are_named_as_what_they_are() -> None:
    s = Setting(spare=lambda: True)
    s.fail("create", errno.EMFILE)
    s.publish()
    await reached(lambda: s.registry.publishers.short)
    assert s.registry.publishers.reason() == "low on file handles"
    await reached(lambda: s.commit.done == 1)
    await s.flusher.stop()


@run
async def test_a_disk_that_is_full_and_low_is_both_until_neither() -> None:
    s = Setting()
    assert s.flusher.set_low(True)
    assert not s.flusher.set_low(True)
    s.fail("write", errno.EDQUOT)
    await s.commits()
    assert s.registry.publishers.short
    assert s.flusher.set_low(False)
    assert not s.registry.publishers.short
    await s.flusher.stop()


@run
async def test_a_failed_batch_is_never_confirmed_and_nothing_after_it() -> None:
    s = Setting()
    s.fail("sync_all", errno.EIO)
    s.publish()
    await reached(lambda: len(s.failures) == 1)
    s.publish()
    await asyncio.sleep(0.05)
    assert str(s.failures[0]) == "[Errno 5] Input/output error: 'a.seg'"
    assert (s.commit.done, s.confirmed, s.gathered) == (0, 0, 1)


@run
async def test_a_sync_that_fails_later_fails_the_batch() -> None:
    def after() -> None:
        raise OSError(errno.EIO, "broken", "a.seg")

    s = Setting(after=after)
    s.publish()
    await reached(lambda: len(s.failures) == 1)
    assert s.commit.done == 0


@run
async def test_syncs_that_were_put_off_come_without_another_batch() -> None:
    synced: list[int] = []
    s = Setting(after=lambda: synced.append(s.commit.done))
    s.sync_in = 0.05
    await s.commits()
    s.sync_in = None
    await reached(lambda: synced[:2] == [0, 1])
    assert s.gathered == 1
    await s.flusher.stop()


@run
async def test_syncs_that_are_due_sooner_do_not_wait_for_those_that_are_due_later() -> None:
    synced: list[int] = []
    s = Setting(after=lambda: synced.append(s.commit.done))
    for s.sync_in in (3600.0, 0.05):
        await s.commits()
    s.sync_in = None
    await reached(lambda: synced[:3] == [0, 1, 2])
    assert s.gathered == 2
    await s.flusher.stop()


@run
async def test_draining_ends_when_everything_is_on_disk() -> None:
    s = Setting()
    s.log.append(message())
    assert await s.flusher.drain(SECONDS)
    assert s.commit.done == 1
    assert await s.flusher.drain(SECONDS)
    await s.flusher.stop()


@run
async def test_draining_waits_for_a_disk_that_is_only_slow() -> None:
    s = Setting()
    s.hold("write")
    s.log.append(message())
    draining = asyncio.create_task(s.flusher.drain(0.01))
    await reached(lambda: s.count("write"))
    await asyncio.sleep(0.1)
    assert not draining.done()
    s.let("write")
    assert await draining
    assert s.commit.done == 1
    await s.flusher.stop()


@run
async def test_draining_gives_up_on_a_disk_that_stays_full() -> None:
    s = Setting()
    s.disk.capacity = 1
    s.log.append(message())
    assert not await s.flusher.drain(0.1)
    await s.flusher.stop()


# --- a real disk ----------------------------------------------------------------------------------


@contextmanager
def in_place_of(file: int, path: str) -> Iterator[None]:
    """Let an open file lead to a device that fails; what it was is there again afterwards."""
    kept, device = os.dup(file), os.open(path, os.O_RDWR)
    os.dup2(device, file)
    try:
        yield
    finally:
        os.dup2(kept, file)
        os.close(kept)
        os.close(device)


def open_file(s: Setting) -> int:
    """The descriptor of the segment that is written to."""
    return int(s.log.segments[-1].writer.fileno())


@run
async def test_a_batch_that_is_only_writes_and_syncs_needs_no_python_thread() -> None:
    with TemporaryDirectory() as directory:
        s = Setting(directory)
        await s.commits(b"first")
        assert s.flusher.writes == 0, "it creates the file"
        s.operations.clear()
        for body in (b"second", b"third", b"fourth"):
            await s.commits(body)
        assert (s.flusher.writes, s.flusher.syncs.count, s.operations) == (3, 3, [])
        await s.flusher.stop()
        octets = b"".join(path.read_bytes() for path in Path(directory, DIRECTORY).iterdir())
        assert all(body in octets for body in (b"first", b"second", b"third", b"fourth"))


@run
async def test_rows_that_are_synced_later_are_written_and_no_sync_is_counted() -> None:
    with TemporaryDirectory() as directory:
        s = Setting(directory)
        for done, body in enumerate((b"first", b"rows"), 1):
            s.commit.staging = 1
            s.log.append(message(body))
            s.commit.staging = 0
            s.commit.unsynced = True
            s.commit.urgent = True
            s.flusher.look()
            await reached(lambda done=done: s.commit.done == done)  # type: ignore[misc]
        assert (s.flusher.writes, s.flusher.syncs.count) == (1, 0)
        assert s.flusher.written > len(b"rows")
        await s.flusher.stop()
        assert (
            b"rows"
            in Path(directory, DIRECTORY, os.listdir(f"{directory}/{DIRECTORY}")[0]).read_bytes()
        )


@run
async def test_a_write_of_it_that_fails_is_left_to_who_can_wait_for_room() -> None:
    with TemporaryDirectory() as directory:
        s = Setting(directory)
        await s.commits()
        with in_place_of(open_file(s), "/dev/full"):
            s.publish()
            await reached(lambda: s.registry.publishers.short)
            assert "cannot write, publishers wait: [Errno 28]" in s.lines[0]
            assert s.commit.done == 1
        await reached(lambda: s.commit.done == 2)
        assert s.flusher.writes == 0
        await s.flusher.stop()


@run
async def test_a_sync_of_it_that_fails_names_the_file_and_is_not_tried_again() -> None:
    with TemporaryDirectory() as directory:
        s = Setting(directory)
        await s.commits()
        s.operations.clear()
        with in_place_of(open_file(s), "/dev/null"):
            s.publish()
            await reached(lambda: len(s.failures) == 1)
            assert s.count("sync") == 0
            path = s.log.segments[-1].path
            assert str(s.failures[0]) == f"[Errno 22] Invalid argument: '{directory}/{path}'"
            assert (s.commit.done, s.confirmed, s.gathered) == (1, 1, 2)


@run
async def test_a_batch_goes_to_the_thread_while_syncs_are_put_off() -> None:
    with TemporaryDirectory() as directory:
        s = Setting(directory)
        await s.commits()
        s.sync_in = 3600.0
        await s.commits()
        assert s.flusher.writes == 0
        s.sync_in = None
        await s.flusher.stop()


# --- waiting for more messages --------------------------------------------------------------------


@run
async def test_a_batch_waits_for_few_messages_no_longer_than_a_commit_takes() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flusher, "GATHER_SECONDS", SECONDS)
        s = Setting()
        s.commit.records = 3
        await s.commits()
        s.commit.records = 1
        began = time.monotonic()
        await s.commits()
        assert time.monotonic() - began < SECONDS / 2
        assert s.gathered == 2
        await s.flusher.stop()


@run
async def test_a_batch_waits_for_a_window_of_messages_longer_than_a_commit_takes() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flusher, "GATHER_SECONDS", 0.2)
        s = Setting()
        s.commit.records = 100
        await s.commits()
        s.commit.records = 1
        began = time.monotonic()
        s.publish()
        await reached(lambda: s.gathered == 2)
        assert time.monotonic() - began > 0.1
        await s.flusher.stop()


# --- removing segments ----------------------------------------------------------------------------


@run
async def test_a_commit_does_not_wait_for_the_removal_of_segments() -> None:
    s = Setting()
    await s.settle_segments(3)
    await reached(lambda: s.count("remove") == 1)
    # A batch that comes meanwhile is performed before the next segment is removed.
    writes = s.count("write")
    s.hold("write")
    s.publish()
    await reached(lambda: s.commit.flying is not None)
    s.let("remove", 1)
    await reached(lambda: s.count("write") == writes + 1)
    assert s.count("remove") == 1
    s.let("write")
    await reached(lambda: s.commit.done == s.gathered)
    s.let("remove")
    await reached(s.are_removed)
    await s.flusher.stop()


@run
async def test_segments_that_wait_are_removed_before_the_thread_ends() -> None:
    s = Setting()
    await s.settle_segments(3)
    s.let("remove")
    await s.flusher.stop()
    assert s.are_removed()


@run
async def test_a_removal_that_cannot_be_done_for_now_holds_up_those_behind_it_alone() -> None:
    s = Setting()
    await s.settle_segments(2)
    await reached(lambda: s.count("remove") == 1)
    s.fail("sync_directory", errno.EMFILE)
    s.let("remove")
    await s.commits()
    await reached(s.are_removed)
    assert s.count("remove") == 3
    assert not s.failures
    await s.flusher.stop()


@run
async def test_a_removal_that_fails_ends_the_broker() -> None:
    s = Setting()
    await s.settle_segments(1)
    await reached(lambda: s.count("remove") == 1)
    s.fail("sync_directory", errno.EIO)
    s.let("remove")
    await reached(lambda: len(s.failures) == 1)
    assert str(s.failures[0]) == "[Errno 5] Input/output error: 'a.seg'"


# --- a store on a server --------------------------------------------------------------------------


@contextmanager
def served() -> Iterator[ServerByHand]:
    server = ServerByHand()
    yield server
    server.close()


async def on_server(server: ServerByHand, **options: Any) -> Setting:
    """A flusher of a store on a server, which has the file that batches write to."""
    s = Setting(remote=server, **options)
    await s.commits()
    assert server.sent == 0, "a batch that creates a file is for the thread"
    s.operations.clear()
    return s


@run
async def test_a_small_batch_is_sent_to_a_server_without_the_thread() -> None:
    with served() as server:
        s = await on_server(server)
        for done in range(1, 4):
            s.publish()
            await reached(lambda done=done: server.sent == done)  # type: ignore[misc]
            await asyncio.sleep(0.01)
            assert (s.commit.done, s.confirmed) == (done, done)
            server.may_answer()
            await reached(lambda done=done: s.commit.done == done + 1)  # type: ignore[misc]
        assert {thread for _, thread in s.operations} == {threading.main_thread()}
        await s.flusher.stop()


@run
async def test_an_answer_that_is_not_complete_is_waited_for() -> None:
    with served() as server:
        server.answer = None
        s = await on_server(server)
        s.publish()
        await reached(lambda: server.sent == 1)
        server.may_answer()
        await asyncio.sleep(0.02)
        assert s.commit.done == 1
        server.answer = True
        server.may_answer()
        await reached(lambda: s.commit.done == 2)
        await s.flusher.stop()


@run
async def test_a_batch_that_was_not_committed_for_sure_is_left_to_the_thread() -> None:
    with served() as server:
        appended: list[threading.Thread] = []
        server.answer = False
        s = await on_server(server, after=lambda: appended.append(threading.current_thread()))
        s.publish()
        await reached(lambda: server.sent == 1)
        server.may_answer()
        await reached(lambda: s.commit.done == 2)
        assert len(appended) == 2
        assert threading.main_thread() not in appended
        await s.flusher.stop()


@run
async def test_a_large_batch_and_one_without_a_connection_go_to_the_thread() -> None:
    with served() as server:
        s = await on_server(server)
        server.has_connection = False
        await s.commits()
        server.has_connection = True
        s.operations.clear()
        await s.commits(bytes(100_000))
        assert server.sent == 0
        assert threading.main_thread() not in {thread for _, thread in s.operations}
        await s.flusher.stop()


@run
async def test_a_batch_waits_for_no_more_messages_after_one_of_many_bytes() -> None:
    with pytest.MonkeyPatch.context() as patch, served() as server:
        patch.setattr(flusher, "GATHER_SECONDS", SECONDS)
        s = await on_server(server)
        s.commit.records = 100
        await s.commits(bytes(GATHER_BYTES + 1))
        began = time.monotonic()
        s.commit.records = 1
        await s.commits(bytes(GATHER_BYTES + 1))
        assert time.monotonic() - began < SECONDS / 2
        await s.flusher.stop()


@run
async def test_the_thread_tidies_up_when_all_is_confirmed_and_batches_wait_for_it() -> None:
    with served() as server:
        s = await on_server(server)
        server.is_dirty = True
        server.may_clean.clear()
        s.publish()
        await reached(lambda: server.sent == 1)
        server.may_answer()
        await reached(lambda: s.commit.done == 2)
        await reached(server.cleans.is_set)
        s.publish()
        await asyncio.sleep(0.02)
        assert (server.sent, s.commit.done) == (1, 2)
        server.may_clean.set()
        await reached(lambda: s.commit.done == 3)
        s.publish()
        await reached(lambda: server.sent == 2)
        server.may_answer()
        await reached(lambda: s.commit.done == 4)
        await s.flusher.stop()


@run
async def test_a_connection_that_ends_while_nothing_is_sent_is_not_watched_any_more() -> None:
    with served() as server:
        s = await on_server(server)
        s.publish()
        await reached(lambda: server.sent == 1)
        server.may_answer()
        await reached(lambda: s.commit.done == 2)
        server.may_answer()
        for _ in range(5):
            # The loop looks at its sockets in each turn.
            await asyncio.sleep(0)
        assert not asyncio.get_running_loop().remove_reader(server.descriptor)
        await s.flusher.stop()


@run
async def test_a_batch_of_which_the_cache_takes_nothing_any_more_ends_the_broker() -> None:
    with served() as server:
        s = await on_server(server)
        s.fail("write", errno.EIO)
        s.publish()
        await reached(lambda: len(s.failures) == 1)
        assert (server.sent, s.commit.done) == (0, 1)


def test_a_batch_that_ends_after_the_event_loop_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    died: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda given: died.append(given.exc_value))

    async def stopped_meanwhile() -> Setting:
        s = Setting()
        s.hold("write")
        s.publish()
        await reached(lambda: s.count("write") == 1)
        await s.flusher.stop()
        return s

    s = asyncio.run(stopped_meanwhile())
    threads = [each for each in threading.enumerate() if each.name == "flusher"]
    s.let("write")
    assert eventually(lambda: s.count("sync_all") == 1)
    for thread in threads:
        # It goes on waiting for batches, unless it has died.
        thread.join(0.05)
    assert died == []
