"""Decide when a batch is gathered, who performs it, and what follows from its outcome.

    loop     turn, turn, turn ... | finish, release | turn ...
             gather v             ^ done
    batch           perform ------+

One batch is in progress at a time; changes that happen meanwhile go into the next one. A batch
that fails because the disk is full is retried until it succeeds, and publishers are blocked. A
batch that fails otherwise is never confirmed: what the disk has of it is unknown, so the process
exits, and the next start recovers.

Three can perform a batch. Most batches consist only of writes and syncs: a `SyncThread` does these
without the interpreter. A small batch for PostgreSQL is sent by the event loop (`LoopCommits`). A
`BatchThread` does everything else, and whatever one of the other two could not finish.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import Callable
from typing import Annotated, Protocol

from harebell.base.c_types import C, Cpdef, i32, i64
from harebell.base.histogram import SYNC_SECONDS, Histogram
from harebell.base.ports import Commit, Definitions
from harebell.front.common.blocked_publishers import DISK, FILES
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.server.disk.batch_thread import BatchThread
from harebell.server.disk.batches import Batch, DirectWork, Nothing
from harebell.server.disk.loop_commits import LoopCommits, Remote, Upkeep
from harebell.server.disk.sync_thread import SyncThread
from harebell.server.limits import (
    FLUSH_SECONDS,
    GATHER_BYTES,
    GATHER_MANY,
    GATHER_SECONDS,
    GATHER_SHARE,
    PERFORM_MAX,
    SLOW_COMMIT_SECONDS,
    STALL_RETRY_SECONDS,
    TICK_SECONDS,
)

_NO_FILES = (errno.EMFILE, errno.ENFILE)


class Gathering(Protocol):
    """A group commit; see `harebell.store.commit`."""

    urgent: bool
    waiting: bool
    records: int

    def gather(self) -> Batch | None:
        """Gather everything that changed into a batch."""

    def finish(self, batch: Batch) -> None:
        """Finish a batch that is on disk."""


class Flusher:
    """Hands batches to a thread and reports their results.

    Args:
        loop: calls back there.
        commit: the group commit that batches are gathered from.
        registry: the connection registry; it releases confirms and blocks publishers.
        definitions: those of the store; they may have changes that no client waits for.
        after: called in the thread after each batch; it may raise OSError.
        sync_in: returns the seconds until `after` is due without a batch; None for never.
        log: called with a level and a line.
        failed: called once, with the error, when nothing may be confirmed any more.
        flush: called after a commit, and when the room on the disk changes.
        spare: frees the reserve on a full disk; returns true if there was one.
        removes_later: whether segments are removed after their batch is confirmed. Not in
            PostgreSQL, where that is a part of the batch.
        remote: the store in PostgreSQL; None for one in the data directory.

    Attributes:
        syncs: how long the syncs of commits took in the sync thread, in seconds. Those of other
            commits are in `OsFiles.syncs`.
        writes: the writes that the sync thread did.
        written: their bytes.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        commit: Commit,
        registry: ConnectionRegistry,
        *,
        definitions: Definitions,
        after: Callable[[], None],
        sync_in: Callable[[], float | None],
        log: Callable[[str, str], None],
        failed: Callable[[Exception], None],
        flush: Callable[[], None],
        spare: Callable[[], bool] = lambda: False,
        removes_later: bool = True,
        remote: Remote | None = None,
    ) -> None:
        self._loop = loop
        # A store on disk has one that gathers.
        self._commit: Annotated[Gathering, "harebell.store.commit.GroupCommit"] = commit  # type: ignore[assignment]
        self._registry = registry
        self._definitions = definitions
        self._sync_in = sync_in
        self._sync_timer: asyncio.TimerHandle | None = None
        self._log = log
        self._failed = failed
        self._flush = flush
        self._spare = spare
        self._due = False
        self._late: asyncio.TimerHandle | None = None
        self._late_at: float = 0.0
        self._patience: asyncio.TimerHandle | None = None
        self._expected: i64 = 0
        self._worth_seconds: float = GATHER_SECONDS
        self._began = 0.0
        self._flying: Batch | None = None
        self._ticks: i32 = 0
        self._slow_ticks: i32 = round(SLOW_COMMIT_SECONDS / TICK_SECONDS)
        self._stalled = ""
        self._low = False
        self._over = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread = BatchThread(loop, self._performed, after, removes_later=removes_later)
        self._remote: LoopCommits | None = None
        self._upkeep: Upkeep | None = None
        if remote is not None:
            self._remote = LoopCommits(loop, remote, self._committed, self._give)
        self._sync_thread: SyncThread | None = None
        self._direct: Annotated[DirectWork, "harebell.store.commit.Direct"] | None = None
        self.syncs = Histogram(SYNC_SECONDS)
        self.writes: i64 = 0
        self.written: i64 = 0
        with contextlib.suppress(OSError, AttributeError):
            # Without eventfd (it needs Linux), the Python thread does everything.
            self._sync_thread = SyncThread()
            loop.add_reader(self._sync_thread.fileno(), self._sync_thread_done)

    def look(self) -> C[None]:
        """Start or schedule a commit of what may have changed."""
        if self._flying is not None or self._due or self._over:
            return
        if self._commit.urgent:
            if self._commit.records >= self._expected:
                self._due = True
                # Run at the end of the turn, so that one commit has the messages of all sockets.
                self._loop.call_soon(self._hand_over)
            elif self._patience is None:
                self._patience = self._loop.call_later(self._worth_seconds, self._hand_over)
        elif not self._late_at and (self._commit.waiting or self._definitions.gathered):
            self._late_at = self._loop.time() + FLUSH_SECONDS
            if self._late is None:
                self._late = self._loop.call_at(self._late_at, self._hand_over_late)

    def tick(self) -> None:
        """Report a commit that takes long: nothing is confirmed until it ends.

        Ticks are counted, for a broker that was suspended itself is not waiting.
        """
        if self._flying is None or self._stalled:
            self._ticks = 0
            return
        self._ticks += 1
        if self._ticks == self._slow_ticks:
            place = "database" if self._remote is not None else "disk"
            self._log(
                "warning",
                f"the {place} has not ended a commit for {SLOW_COMMIT_SECONDS:g} seconds, "
                "publishers wait",
            )

    def set_low(self, low: bool) -> bool:
        """Set whether the disk is low; True if that has changed."""
        news = low != self._low
        self._low = low
        self._report_shortages()
        return news

    async def drain(self, seconds: float, longest: float | None = None) -> bool:
        """Write everything; False if writes have failed for `seconds`.

        There is no limit for a disk that is only slow, because unwritten messages would be lost.

        Args:
            seconds: see above.
            longest: seconds after which a commit that hangs is waited for no longer; None to wait
                for it in any case.
        """
        until = None if longest is None else time.monotonic() + longest
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while True:
                        await self._idle.wait()
                        self._hand_over()
                        if self._flying is None:
                            return True
            late = until is not None and time.monotonic() >= until
            if self._stalled or self._over or late:
                return False

    async def stop(self) -> None:
        """End the thread; a batch that is in progress is not waited for."""
        self._over = True
        for timer in (self._late, self._patience, self._sync_timer):
            if timer is not None:
                timer.cancel()
        if self._sync_thread is not None:
            self._loop.remove_reader(self._sync_thread.fileno())
        if self._remote is not None:
            self._remote.release()
        if self._flying is None:
            self._thread.end()
            if self._sync_thread is not None:
                self._sync_thread.stop()

    def _hand_over_late(self) -> None:
        """Hand over what no client waits for, in time.

        The timer is not cancelled with each batch, since most batches come long before it.
        """
        self._late = None
        if self._late_at > self._loop.time():
            self._late = self._loop.call_at(self._late_at, self._hand_over_late)
        elif self._late_at:
            self._hand_over()

    def _hand_over(self) -> Cpdef[None]:
        self._due = False
        self._late_at = 0.0
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        if self._flying is not None or self._over:
            return
        self._flying = self._commit.gather()
        if self._flying is not None:
            self._idle.clear()
            self._began = time.monotonic()
            if not (self._give_to_sync_thread(self._flying) or self._go_remotely(self._flying)):
                self._give(self._flying)

    def _give(self, batch: Batch) -> Cpdef[None]:
        """Give a batch to the thread, and the connection of the store with it."""
        if self._remote is not None:
            self._remote.release()
        self._thread.give(batch)

    def _give_to_sync_thread(self, batch: Batch) -> C[bool]:
        """Give a batch to the sync thread, if it only writes and syncs."""
        if self._sync_thread is None or self._stalled or self._sync_in() is not None:
            return False
        work = batch.direct()
        if work is None or len(work.writes) > PERFORM_MAX:
            return False
        self._direct = work
        self._sync_thread.begin(
            work.writes,
            work.syncs,
            unsynced=work.unsynced,
            paths=work.creates,
            last=work.last,
            repeated=work.repeated,
        )
        return True

    def _sync_thread_done(self) -> None:
        """Finish a batch of the sync thread."""
        work, batch = self._direct, self._flying
        if self._sync_thread is None or work is None or batch is None:
            return
        self._direct = None
        failure = self._sync_thread.end()
        if failure is not None:
            error, place, syncing = failure
            if not syncing:
                # The Python thread repeats the batch: it reports the error or retries.
                self._thread.give(batch)
                return
            batch.failed = OSError(error, os.strerror(error), work.paths[place])
        if work.creates:
            work.adopt(self._sync_thread.opened)
        if work.syncs:
            self.syncs.observe(self._sync_thread.sync_seconds)
        self.writes += len(work.writes)
        self.written += work.byte_count
        self._performed(batch)

    def _go_remotely(self, batch: Batch) -> C[bool]:
        """Commit a batch in the event loop, if it is small and the thread has nothing to do."""
        if self._remote is None or self._stalled or self._upkeep is not None:
            return False
        return self._remote.begin(batch)

    def _committed(self, batch: Batch) -> None:
        """Finish a batch of the event loop."""
        if batch.failed is None:
            self.syncs.observe(time.monotonic() - self._began)
        self._performed(batch)

    def _performed(self, batch: Batch) -> Cpdef[None]:
        if self._over:
            return
        if batch.failed is not None:
            self._over = True
            self._failed(batch.failed)
            return
        if batch.stalled is not None:
            self._stall(batch, batch.stalled)
            return
        if self._stalled:
            self._log("warning", "the disk takes writes again")
            self._stalled = ""
            self._report_shortages()
        if batch is self._upkeep:
            self._upkeep = None
        if batch is self._flying:
            self._flying = None
            if self._ticks >= self._slow_ticks:
                took = time.monotonic() - self._began
                self._log("info", f"the commit has ended after {took:.1f} seconds")
            self._ticks = 0
            # Publishers with a window of unconfirmed messages continue after this confirm. If each
            # batch had only half of them, there would be twice as many syncs. So the next batch
            # waits briefly for as many records as this one had. If few are expected, it waits at
            # most for a share of the last commit's time: they may come from slow publishers.
            # On a server, many bytes take longer than what one commit less would save.
            large = self._remote is not None and batch.byte_count > GATHER_BYTES
            self._expected = 0 if large else batch.records + self._commit.records
            self._worth_seconds = GATHER_SECONDS
            if self._expected < GATHER_MANY:
                took = time.monotonic() - self._began
                self._worth_seconds = min(GATHER_SECONDS, took * GATHER_SHARE)
            self._commit.finish(batch)
            self._registry.committed()
            self._idle.set()
            self._flush()
            self._tidy()
            self.look()
        self._sync_later()

    def _tidy(self) -> C[None]:
        """Let the thread do what no confirm waits for, before the next batch."""
        if self._remote is not None and self._upkeep is None:
            self._upkeep = self._remote.upkeep()
            if self._upkeep is not None:
                self._give(self._upkeep)

    def _sync_later(self) -> C[None]:
        """Schedule deferred syncs for the time when the first of them is due."""
        wait = self._sync_in()
        if wait is None:
            return
        due = self._loop.time() + wait
        if self._sync_timer is not None:
            if self._sync_timer.when() <= due:
                return
            # Another queue has a shorter interval than the one that the timer was for.
            self._sync_timer.cancel()
        self._sync_timer = self._loop.call_at(due, self._sync)

    def _sync(self) -> None:
        self._sync_timer = None
        self._thread.give(Nothing())

    def _stall(self, batch: Batch, error: OSError) -> None:
        """Schedule a retry; publishing connections are not read until it succeeds."""
        if error.errno not in _NO_FILES and self._spare():
            self._log("warning", f"the disk is full, what was kept for that is used: {error}")
            self._low = True
            self._report_shortages()
            self._give(batch)
            return
        if not self._stalled:
            self._log("error", f"cannot write, publishers wait: {error}")
        self._stalled = FILES if error.errno in _NO_FILES else DISK
        self._report_shortages()
        self._loop.call_later(STALL_RETRY_SECONDS, self._give, batch)

    def _report_shortages(self) -> None:
        """Update the shortages of the connection registry."""
        news = self._registry.publishers.set_short(DISK, self._low or self._stalled == DISK)
        news = self._registry.publishers.set_short(FILES, self._stalled == FILES) or news
        if news:
            self._flush()
