"""Commit small batches to a server in the event loop, without waking a thread.

    loop      perform, send | turn, turn ... | answered -> done
    server                    commit --------^

The connection belongs to the loop from `send` until the answer. At any other time it may belong to
the thread, from the moment that it is given a batch until it reports. What is not committed for
sure is left to the thread, which can wait, read the row and try again.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Protocol

from harebell.server.disk.batches import Batch, Nothing
from harebell.server.limits import LOOP_COMMIT_BYTES


class Remote(Protocol):
    """Commits on a server; see `harebell.cluster.postgresql.owned_store`."""

    def send(self) -> int:
        """Send a performed batch; return what to wait for, or -1 if the thread has to commit."""

    def answered(self) -> bool | None:
        """Whether it is committed: None for not yet, False if the thread has to find out."""

    def needs_cleaning(self) -> bool:
        """Whether `clean` has something to do."""

    def clean(self) -> None:
        """Do what no confirm waits for; called in the thread."""


class LoopCommits:
    """Sends batches to a server and watches its connection for the answers.

    Args:
        loop: the event loop.
        server: takes the batches.
        done: called with a batch that is committed, or that has failed.
        left: called with a batch that the thread has to commit.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        server: Remote,
        done: Callable[[Batch], None],
        left: Callable[[Batch], None],
    ) -> None:
        self._loop = loop
        self._server = server
        self._done = done
        self._left = left
        self._sent: Batch | None = None
        self._watched = -1

    def begin(self, batch: Batch) -> bool:
        """Perform and send a batch; false if the thread has to do both.

        The thread must not have the connection.
        """
        if not batch.is_small(LOOP_COMMIT_BYTES):
            return False
        batch.perform()
        if batch.failed is not None:
            self._loop.call_soon(self._done, batch)
            return True
        descriptor = self._server.send() if batch.stalled is None else -1
        if descriptor < 0:
            return False
        self._sent = batch
        self._watch(descriptor)
        return True

    def release(self) -> None:
        """Stop watching the connection, so that the thread may use it."""
        self._watch(-1)

    def upkeep(self) -> Upkeep | None:
        """Return what is left to do for the thread when everything is confirmed."""
        return Upkeep(self._server) if self._server.needs_cleaning() else None

    def _watch(self, descriptor: int) -> None:
        if descriptor == self._watched:
            return
        if self._watched >= 0:
            self._loop.remove_reader(self._watched)
        self._watched = descriptor
        if descriptor >= 0:
            self._loop.add_reader(descriptor, self._answered)

    def _answered(self) -> None:
        """Report the batch that was sent, if the answer is complete."""
        batch = self._sent
        if batch is None:
            # The server has ended the connection: the next batch will find out.
            self.release()
            return
        try:
            committed = self._server.answered()
        except Exception as error:  # a commit that never ends would keep all confirms back
            self._sent = None
            batch.failed = error
            self._done(batch)
            return
        if committed is None:
            return
        self._sent = None
        if committed:
            self._done(batch)
        else:
            self._left(batch)


class Upkeep(Nothing):
    """An empty batch, with what is left to do when everything is confirmed.

    Args:
        server: knows it.
    """

    def __init__(self, server: Remote) -> None:
        super().__init__()
        self._server = server

    def perform(self, *, removing: bool = True) -> None:
        """Do it; a server without room is left to the next batch."""
        try:
            self._server.clean()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                self.failed = error
