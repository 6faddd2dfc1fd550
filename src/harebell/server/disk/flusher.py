"""Write and sync commits in a thread.

    loop     turn, turn, turn ... | finish, release | turn ...
             gather v             ^ done
    thread          perform ------+

One batch is in progress at a time; changes that happen meanwhile go into the next one. A batch
that fails because the disk is full is retried until it succeeds, and publishers are blocked. A
batch that fails otherwise is never confirmed: what the disk has of it is unknown, so the process
exits, and the next start recovers.

Segments are removed after their batch is confirmed, one at a time while the thread has no batch to
perform: removing 8 MiB takes milliseconds, for which no confirm has to wait. Their order is kept. A
broker that ends before it has removed them does so at its next start.

Most batches consist only of writes and syncs. A `SyncThread` does these without the interpreter.

A store in PostgreSQL has a `Remote`. A small batch is sent by the event loop, which has the answer
when its socket can be read, and no thread is woken. The connection belongs to the loop from `send`
until the answer, and to the thread from a `put` into its inbox until it reports; there is no other
time when it is used. What is not committed for sure goes to the thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from harebell.base.histogram import SYNC_SECONDS, Histogram
from harebell.base.limits import (
    FLUSH_SECONDS,
    GATHER_BYTES,
    GATHER_MANY,
    GATHER_SECONDS,
    GATHER_SHARE,
    LOOP_COMMIT_BYTES,
    PERFORM_MAX,
    REMOVALS_MAX,
    STALL_RETRY_SECONDS,
)
from harebell.base.ports import Commit
from harebell.front.common.connection_registry import DISK, FILES, ConnectionRegistry
from harebell.server.disk.sync_thread import SyncThread

_NO_FILES = (errno.EMFILE, errno.ENFILE)


class Direct(Protocol):
    """A batch that only writes and syncs; see `harebell.store.commit`."""

    writes: list[tuple[int, bytes, int]]
    syncs: list[int]
    unsynced: bool
    paths: list[str]


class Removal(Protocol):
    """A segment to be removed; see `harebell.store.removal`."""

    stalled: OSError | None
    failed: Exception | None

    def perform(self) -> None:
        """Remove it."""


class Batch(Protocol):
    """A batch; see `harebell.store.commit`."""

    stalled: OSError | None
    failed: Exception | None
    records: int
    removals: list[Any]

    @property
    def byte_count(self) -> int:
        """How many bytes it writes."""

    def direct(self) -> Direct | None:
        """The batch as writes and syncs; None if it is more than that."""

    def is_small(self, byte_count: int) -> bool:
        """Whether it only writes, to open files, and at most so many bytes."""

    def perform(self, *, removing: bool = True) -> None:
        """Write and sync this batch."""


class Remote(Protocol):
    """Commits on a server; see `harebell.server.postgresql.owned_store`."""

    def send(self) -> int:
        """Send a performed batch; return what to wait for, or -1 if the thread has to commit."""

    def answered(self) -> bool | None:
        """Whether it is committed: None for not yet, False if the thread has to find out."""

    def untidy(self) -> bool:
        """Whether `tidy` has something to do."""

    def tidy(self) -> None:
        """Do what no confirm waits for; called in the thread."""


class Nothing:
    """An empty batch, after which deferred syncs are done.

    Args:
        failed: what has failed outside of any batch.
    """

    stalled: OSError | None = None
    records = byte_count = 0

    def __init__(self, failed: Exception | None = None) -> None:
        self.failed = failed
        self.removals: list[Any] = []

    def direct(self) -> None:
        """No-op: the batch is empty."""

    def is_small(self, byte_count: int) -> bool:
        """True: the batch is empty."""
        return byte_count >= 0

    def perform(self, *, removing: bool = True) -> None:
        """No-op: the batch is empty."""


class Upkeep(Nothing):
    """An empty batch, with what is left to do when everything is confirmed.

    Args:
        remote: knows it.
    """

    def __init__(self, remote: Remote) -> None:
        super().__init__()
        self._remote = remote

    def perform(self, *, removing: bool = True) -> None:
        """Do it; a server without room is left to the next batch."""
        try:
            self._remote.tidy()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                self.failed = error


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
        gathered: returns true if definitions have changes that no client waits for.
        after: called in the thread after each batch; it may raise OSError.
        sync_in: returns the seconds until `after` is due without a batch; None for never.
        log: called with a level and a line.
        failed: called once, with the error, when nothing may be confirmed any more.
        flush: called when connections have output.
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
        gathered: Callable[[], bool],
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
        self._commit: Gathering = commit  # type: ignore[assignment]  # a store on disk has one
        self._registry = registry
        self._gathered = gathered
        self._after = after
        self._sync_in = sync_in
        self._sync_timer: asyncio.TimerHandle | None = None
        self._log = log
        self._failed = failed
        self._flush = flush
        self._spare = spare
        self._removes_later = removes_later
        self._remote = remote
        self._watched = -1
        self._asked = False
        self._tidying = False
        self._removals: deque[Removal] = deque()
        self._due = False
        self._late: asyncio.TimerHandle | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._expected = 0
        self._worth_seconds = GATHER_SECONDS
        self._began = 0.0
        self._flying: Batch | None = None
        self._stalled = ""
        self._low = False
        self._over = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._inbox: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="flusher", daemon=True)
        self._thread.start()
        self._swift: SyncThread | None = None
        self._direct: Direct | None = None
        self.syncs = Histogram(SYNC_SECONDS)
        self.writes = 0
        self.written = 0
        with contextlib.suppress(OSError, AttributeError):
            # Without eventfd (it needs Linux), the Python thread does everything.
            self._swift = SyncThread()
            loop.add_reader(self._swift.fileno(), self._done_swiftly)

    # --- in the event loop ------------------------------------------------------------------------

    def look(self) -> None:
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
        elif self._late is None and (self._commit.waiting or self._gathered()):
            self._late = self._loop.call_later(FLUSH_SECONDS, self._hand_over)

    def set_low(self, low: bool) -> bool:
        """Set whether the disk is low; True if that has changed."""
        news = low != self._low
        self._low = low
        self._report_shortages()
        return news

    async def drain(self, seconds: float) -> bool:
        """Write everything; False if writes have failed for `seconds`.

        There is no limit for a disk that is only slow, because unwritten messages would be lost.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while True:
                        await self._idle.wait()
                        self._hand_over()
                        if self._flying is None:
                            return True
            if self._stalled or self._over:
                return False

    async def stop(self) -> None:
        """End the thread; a batch that is in progress is not waited for."""
        self._over = True
        for timer in (self._late, self._patience, self._sync_timer):
            if timer is not None:
                timer.cancel()
        if self._swift is not None:
            self._loop.remove_reader(self._swift.fileno())
        self._watch(-1)
        if self._flying is None:
            self._inbox.put(None)
            self._thread.join()
            if self._swift is not None:
                self._swift.stop()

    def _hand_over(self) -> None:
        self._due = False
        for timer in (self._late, self._patience):
            if timer is not None:
                timer.cancel()
        self._late = self._patience = None
        if self._flying is not None or self._over:
            return
        self._flying = self._commit.gather()
        if self._flying is not None:
            self._idle.clear()
            self._began = time.monotonic()
            if not (self._go_swiftly(self._flying) or self._go_remotely(self._flying)):
                self._give(self._flying)

    def _give(self, batch: Batch) -> None:
        """Give a batch to the thread, and the connection of the store with it."""
        self._watch(-1)
        self._inbox.put(batch)

    def _go_swiftly(self, batch: Batch) -> bool:
        """Give a batch to the sync thread, if it only writes and syncs."""
        if self._swift is None or self._stalled or self._sync_in() is not None:
            return False
        work = batch.direct()
        if work is None or len(work.writes) > PERFORM_MAX:
            return False
        self._direct = work
        self._swift.begin(work.writes, work.syncs, unsynced=work.unsynced)
        return True

    def _done_swiftly(self) -> None:
        """Finish a batch of the sync thread."""
        work, batch = self._direct, self._flying
        if self._swift is None or work is None or batch is None:
            return
        self._direct = None
        failure = self._swift.end()
        if failure is not None:
            error, place, syncing = failure
            if not syncing:
                # The Python thread repeats the batch: it reports the error or retries.
                self._inbox.put(batch)
                return
            batch.failed = OSError(error, os.strerror(error), work.paths[place])
        if work.syncs:
            self.syncs.observe(self._swift.sync_seconds)
        self.writes += len(work.writes)
        self.written += sum([len(data) for _, data, _ in work.writes])
        self._performed(batch)

    def _go_remotely(self, batch: Batch) -> bool:
        """Commit a small batch without the thread, if nothing is with it."""
        remote = self._remote
        if remote is None or self._stalled or self._tidying:
            return False
        if not batch.is_small(LOOP_COMMIT_BYTES):
            return False
        batch.perform()
        if batch.failed is not None:
            self._loop.call_soon(self._performed, batch)
            return True
        descriptor = remote.send() if batch.stalled is None else -1
        if descriptor < 0:
            return False
        self._asked = True
        self._watch(descriptor)
        return True

    def _watch(self, descriptor: int) -> None:
        """Watch the connection of the store; -1 for none."""
        if descriptor == self._watched:
            return
        if self._watched >= 0:
            self._loop.remove_reader(self._watched)
        self._watched = descriptor
        if descriptor >= 0:
            self._loop.add_reader(descriptor, self._answered)

    def _answered(self) -> None:
        """Finish a batch that was sent, or give it to the thread."""
        remote, batch = self._remote, self._flying
        if remote is None or batch is None or not self._asked:
            # The server has ended the connection: the next batch will find out.
            self._watch(-1)
            return
        committed = remote.answered()
        if committed is None:
            return
        self._asked = False
        if committed:
            self.syncs.observe(time.monotonic() - self._began)
            self._performed(batch)
        else:
            self._give(batch)

    def _performed(self, batch: Batch) -> None:
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
        if isinstance(batch, Upkeep):
            self._tidying = False
        if batch is self._flying:
            self._flying = None
            # Publishers with a window of unconfirmed messages continue after this confirm. If each
            # batch had only half of them, there would be twice as many syncs. So the next batch
            # waits briefly for as many records as this one had. For few of them it does not wait
            # longer than a commit that is saved is worth: they may come from slow publishers.
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

    def _tidy(self) -> None:
        """Let the thread do what no confirm waits for, before the next batch."""
        if self._remote is not None and not self._tidying and self._remote.untidy():
            self._tidying = True
            self._give(Upkeep(self._remote))

    def _sync_later(self) -> None:
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
        self._inbox.put(Nothing())

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
        news = self._registry.set_short(DISK, self._low or self._stalled == DISK)
        news = self._registry.set_short(FILES, self._stalled == FILES) or news
        if news:
            self._flush()

    # --- in the thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            if self._removals and self._inbox.empty() and self._remove_one():
                continue
            batch = self._inbox.get()
            if batch is None:
                self._remove(REMOVALS_MAX)
                return
            if len(self._removals) > REMOVALS_MAX:
                self._remove(REMOVALS_MAX)
            batch.perform(removing=not self._removes_later)
            if batch.failed is None and batch.stalled is None:
                try:
                    self._after()
                except OSError as error:
                    # A database without room has not taken the batch, and will when it has room.
                    if error.errno == errno.ENOSPC:
                        batch.stalled = error
                    else:
                        batch.failed = error
            if batch.failed is None and batch.stalled is None:
                self._removals.extend(batch.removals)
            self._report(batch)

    def _report(self, batch: Batch) -> None:
        # After `stop` nothing waits for a batch that was in progress, and the loop may be closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._performed, batch)

    def _remove(self, limit: int) -> None:
        """Remove at most `limit` segments, fewer if one has to wait."""
        for _ in range(min(limit, len(self._removals))):
            if not self._remove_one():
                return

    def _remove_one(self) -> bool:
        """Remove the next segment; false if it has to wait until after another batch."""
        removal = self._removals[0]
        removal.perform()
        if removal.failed is not None:
            self._removals.clear()
            self._report(Nothing(removal.failed))
            return False
        if removal.stalled is not None:
            return False
        self._removals.popleft()
        return True
