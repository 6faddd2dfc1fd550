"""Compute and compare slow password hashes in a thread, so that the event loop is not blocked.

One password is compared at a time, so hostile logins use at most one core and the memory of one
hash. Addresses are served round robin, so that many logins of one address do not delay those of
others. After a password was right, all other waiting logins of that user are decided without a slow
hash, because any other password is wrong.

The thread has the priority of the event loop. With a lower one it would get next to no time on a
busy machine: logins would take longer than their timeout, and whenever it was held back with the
interpreter's lock, the event loop would stand still for seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from harebell.auth.passwords import matches
from harebell.auth.users import Doubt, Users


@dataclass(frozen=True, slots=True)
class _Job:
    doubt: Doubt
    compared: Callable[[bool], None]
    wanted: Callable[[], bool]


class PasswordVerifier:
    """Compares passwords in order; used as `Users.later`.

    Args:
        loop: the event loop; results are reported in it.
        users: caches right passwords.
        flush: called after a result, when connections may have output.
        compare: returns true if a password matches a stored hash; called in the thread.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        users: Users,
        flush: Callable[[], None],
        compare: Callable[[str, str, str], bool] = matches,
    ) -> None:
        self._loop = loop
        self._users = users
        self._flush = flush
        self._compare = compare
        self._waiting: dict[str, deque[_Job]] = {}
        self._busy = False
        self._thread = users.thread = ThreadPoolExecutor(1, "harebell-passwords")

    def __call__(
        self,
        doubt: Doubt,
        address: str,
        compared: Callable[[bool], None],
        wanted: Callable[[], bool],
    ) -> None:
        """Queue a password for comparison.

        Args:
            doubt: the user and the password.
            address: the address of the client.
            compared: called with true if the password is right.
            wanted: returns false if the result is no longer needed.
        """
        self._waiting.setdefault(address, deque()).append(_Job(doubt, compared, wanted))
        self._next()

    def close(self) -> None:
        """Drop the waiting passwords, and end the thread."""
        self._waiting.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> None:
        """Start the next comparison; logins that need no hash are answered first."""
        while self._waiting and not self._busy:
            address = next(iter(self._waiting))
            jobs = self._waiting.pop(address)
            job = jobs.popleft()
            if jobs:
                # Move the address to the end of the round robin.
                self._waiting[address] = jobs
            if not job.wanted():
                continue
            right = self._users.judged(job.doubt.user, job.doubt.password)
            if right is None:
                self._begin(job)
            else:
                self._answer(job, right)

    def _begin(self, job: _Job) -> None:
        self._busy = True
        user, password = job.doubt.user, job.doubt.password
        stored = user.password_hash
        done = self._loop.run_in_executor(
            self._thread, self._compare, password, stored, user.algorithm
        )

        def finished(future: asyncio.Future[bool]) -> None:
            self._busy = False
            if future.cancelled():
                return
            right = future.exception() is None and future.result()
            right = right and user.password_hash == stored
            if right:
                self._users.remember(user, password, stored)
            self._answer(job, right)
            self._next()

        done.add_done_callback(finished)

    def _answer(self, job: _Job, right: bool) -> None:
        # Not in the current call: the connection may be parsing its input.
        self._loop.call_soon(self._finish, job, right)

    def _finish(self, job: _Job, right: bool) -> None:
        job.compared(right)
        self._flush()
