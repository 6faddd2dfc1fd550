"""Compare passwords with slow hashes, and make them, in a thread: the event loop goes on.

One is compared at a time, in a thread of low priority: hostile logins take at most one hash's
memory, and what is left of a processor. Addresses have their turns, and who is behind others of
one address waits for those alone. When a user's password was found, all that wait for the same
user are judged at once, as any other password is wrong then.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from harebell.auth.passwords import matches
from harebell.auth.users import Doubt, Users

_NICE = 10


@dataclass(frozen=True, slots=True)
class _Job:
    doubt: Doubt
    compared: Callable[[bool], None]
    wanted: Callable[[], bool]


def _be_nice() -> None:
    """Leave the processor to the event loop's thread; Linux has a priority per thread."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


class PasswordVerifier:
    """Passwords that wait to be compared; `Users.later` is this.

    Args:
        loop: the event loop, on which answers are given.
        users: remember passwords that were right.
        flush: called when an answer may have led to output.
        compare: whether a password has a stored hash of an algorithm; called in the thread.
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
        self._thread = users.thread = ThreadPoolExecutor(1, "harebell-passwords", _be_nice)

    def __call__(
        self,
        doubt: Doubt,
        address: str,
        compared: Callable[[bool], None],
        wanted: Callable[[], bool],
    ) -> None:
        """Compare a password when it is the address's turn.

        Args:
            doubt: the user and the password.
            address: where it comes from.
            compared: told whether the password is right.
            wanted: whether the answer still matters.
        """
        self._waiting.setdefault(address, deque()).append(_Job(doubt, compared, wanted))
        self._next()

    def close(self) -> None:
        """Drop what waits, and end the thread."""
        self._waiting.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> None:
        """Begin the next comparison; what can be judged without one is."""
        while self._waiting and not self._busy:
            address = next(iter(self._waiting))
            jobs = self._waiting.pop(address)
            job = jobs.popleft()
            if jobs:
                # The address goes to the end: others have their turn.
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
        # Never within the call that asked: that one is in the middle of reading.
        self._loop.call_soon(self._tell, job, right)

    def _tell(self, job: _Job, right: bool) -> None:
        job.compared(right)
        self._flush()
