"""Perform batches in a thread, one at a time, and remove segments while there are none.

    loop      give(batch) ...................... performed(batch)
    thread          perform, after, report ------^ | remove, remove ...

Segments are removed after their batch is reported, one at a time while the thread has no batch to
perform: removing 8 MiB takes milliseconds, for which no confirm has to wait. Their order is kept. A
broker that ends before it has removed them does so at its next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import queue
import threading
from collections import deque
from collections.abc import Callable

from harebell.server.disk.batches import Batch, Nothing, Removal
from harebell.server.limits import REMOVALS_MAX


class BatchThread:
    """Performs the batches that it is given, in their order.

    Args:
        loop: the event loop.
        performed: called there with each batch that was tried.
        after: called in the thread after each batch; it may raise OSError.
        removes_later: whether segments are removed after their batch is reported. Not in
            PostgreSQL, where that is a part of the batch.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        performed: Callable[[Batch], None],
        after: Callable[[], None],
        *,
        removes_later: bool,
    ) -> None:
        self._loop = loop
        self._performed = performed
        self._after = after
        self._removes_later = removes_later
        self._removals: deque[Removal] = deque()
        self._inbox: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="flusher", daemon=True)
        self._thread.start()

    def give(self, batch: Batch) -> None:
        """Perform a batch after those that were given before."""
        self._inbox.put(batch)

    def end(self) -> None:
        """Remove what is to be removed, and end the thread; there must be no batch."""
        self._inbox.put(None)
        self._thread.join()

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
                except Exception as error:  # a thread cannot raise: the server ends the process
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
