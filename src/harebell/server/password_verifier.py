"""Compute and compare slow password hashes in a thread, so that the event loop is not blocked.

One password is compared at a time, so hostile logins use at most one core and the memory of one
hash. Addresses are served round robin, so that many logins of one address do not delay those of
others. A password that was right before is right without a slow hash; any other one takes a hash,
also of a user who does not exist, so that the time of a refusal tells nothing. The function
`user_with` is for doors that wait for the answer.

The thread has the priority of the event loop. With a lower one it would get next to no time on a
busy machine: logins would take longer than their timeout, and whenever it was held back with the
interpreter's lock, the event loop would stand still for seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from harebell.auth.password_hashes import matches
from harebell.auth.users import Doubt, User, Users


async def user_with(users: Users, name: str, password: str, address: str) -> User | None:
    """Return the user with a password, after a comparison in the thread; None if there is none."""
    judged = users.judge(name, password)
    if not isinstance(judged, Doubt):
        return judged
    if users.later is None:
        return users.authenticate(name, password, "")
    done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def settle(right: bool) -> None:
        if not done.done():
            done.set_result(right)

    users.later(judged, address, settle, lambda: not done.done())
    return judged.user if await done else None


class _Job(Struct, frozen=True):
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
        """Start the next comparison; the right password that is known by now needs none."""
        while self._waiting and not self._busy:
            address = next(iter(self._waiting))
            jobs = self._waiting.pop(address)
            job = jobs.popleft()
            if jobs:
                # Move the address to the end of the round robin.
                self._waiting[address] = jobs
            if not job.wanted():
                continue
            if self._users.proven(job.doubt.user, job.doubt.password):
                self._answer(job, right=True)
            else:
                self._begin(job)

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
            self._answer(job, right=right)
            self._next()

        done.add_done_callback(finished)

    def _answer(self, job: _Job, *, right: bool) -> None:
        # Not in the current call: the connection may be parsing its input.
        self._loop.call_soon(self._finish, job, right)

    def _finish(self, job: _Job, right: bool) -> None:
        job.compared(right)
        self._flush()
