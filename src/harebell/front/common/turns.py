"""Turns: the work budget of each user, so that all users are served.

A turn is one pass of the event loop. Every user has one account for all connections: input is
processed until WORK_USER_UNITS are spent. The rest waits in its connection for the next turn:

    ready    bob: connection 7, connection 9, a queue that is emptied   ann: connection 3
             one slice each, user by user, then connection by connection

The server calls `next_turn` in the pass after the one in which it was woken. A new turn begins
only when a user has spent half of the budget, so that light load has no cost of turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol
from weakref import ref

from harebell.base.c_types import C, Done, i64
from harebell.base.failures import Failures
from harebell.base.work import NO_LIMIT, Step, Work
from harebell.front.limits import WORK_MIN_UNITS, WORK_TURN_UNITS
from harebell.model.limits import WORK_SLICE_UNITS

_SLICE_UNITS = WORK_SLICE_UNITS
_MIN_UNITS = WORK_MIN_UNITS


class Waiter(Protocol):
    """Work that continues in another turn."""

    def go_on(self) -> None:
        """Do a slice; call `Turns.wait` again if there is more to do."""


class Account:
    """The work units that one user has spent in this turn, and the work that waits for the next.

    Args:
        name: of the user, or the address before the login.

    Attributes:
        turn: the number of the turn of `spent`.
        spent: the spent units.
        waiting: the work that continues in a later turn.
        queued: whether it is in the list of accounts with waiting work.
    """

    __weakref__: object

    def __init__(self, name: str) -> None:
        self.name = name
        self.turn: i64 = 0
        self.spent: i64 = 0
        self.waiting: deque[Waiter] = deque()
        self.queued = False


class _Kept(ref[Account]):
    """A reference to an account, with the name that it is kept under."""

    __slots__ = ("name",)

    name: str


def _no_wake() -> None:
    """Do nothing: there is no server."""


class Turns:
    """Shares the turns of a broker among its users.

    Args:
        work: counts the work units.

    Attributes:
        units: the budget of a user per turn. Without a server there are no turns and no limit.
        wake: makes the server call `next_turn` in the next pass of its loop.
        own: the account of the broker's own work, like timers.
        failures: counts waiters that raise; the server sets that of the broker.
        current: the account whose work is being done; None for none.
        crowded: whether a user has spent the budget of this turn, so that input may have to wait.
    """

    def __init__(self, work: Work) -> None:
        self.work = work
        self.failures = Failures()
        self.units: i64 = NO_LIMIT
        self.wake: Callable[[], None] = _no_wake
        self.current: Account | None = None
        self.crowded = False
        self._turn: i64 = 0
        self._waking = False
        # Weak: an account ends with its last connection, as peers may come from any number of
        # addresses.
        self._accounts: dict[str, _Kept] = {}
        self._ready: deque[Account] = deque()
        self.own: Account = self.account("")

    def limit(self, units: int, wake: Callable[[], None]) -> None:
        """Limit the work per turn; the server calls `next_turn` after it was woken."""
        self.units = units
        self.wake = wake
        self._turn += 1
        self.work.later = self.later

    def account(self, name: str) -> Account:
        """Get the account of that name."""
        kept = self._accounts.get(name)
        account = None if kept is None else kept()
        if account is None:
            account = Account(name)
            kept = self._accounts[name] = _Kept(account, self._forget)
            kept.name = name
        return account

    def _forget(self, kept: _Kept) -> None:
        """Drop the reference to an account that has ended, unless its name has a new one."""
        if self._accounts.get(kept.name) is kept:
            del self._accounts[kept.name]

    @property
    def limited(self) -> bool:
        """True if there are turns."""
        return self.units != NO_LIMIT

    @property
    def waiting(self) -> int:
        """How many users have work that waits for another turn."""
        return len(self._ready)

    @property
    def busy(self) -> bool:
        """True if something waits for another turn."""
        return bool(self._ready)

    # --- one after the other --------------------------------------------------------------------

    def begin(self, account: Account) -> C[bool]:
        """Begin work for an account; False when its budget is spent. `end` ends it."""
        if account.turn != self._turn:
            account.turn = self._turn
            account.spent = 0
        left = self.units - account.spent
        if left <= 0:
            self.crowded = True
            return False
        self.current = account
        self.work.begin(left)
        return True

    def begin_anyway(self, account: Account) -> Done:
        """Begin little work for an account, even if its budget is spent."""
        if not self.begin(account):
            self.current = account
            self.work.begin(_MIN_UNITS)
        return 0

    def end(self) -> i64:
        """End the work that was begun; return the spent units."""
        account = self.current
        self.current = None
        spent = self.work.end()
        if account is not None:
            account.spent += spent
            if 2 * account.spent >= self.units:
                self._wake()
        return spent

    def _wake(self) -> Done:
        if not self._waking:
            self._waking = True
            self.wake()
        return 0

    # --- in another turn ------------------------------------------------------------------------

    def wait(self, account: Account, waiter: Waiter) -> Done:
        """Queue a waiter on an account."""
        account.waiting.append(waiter)
        if not account.queued:
            account.queued = True
            self._ready.append(account)
        return self._wake()

    def later(self, step: Step) -> None:
        """Queue the rest of a long operation on the current account."""
        account = self.own if self.current is None else self.current
        self.wait(account, Chore(self, account, step))

    def rest(self) -> None:
        """Let the current account wait for the next turn."""
        if self.limited and self.current is not None:
            self.current.spent = max(self.current.spent, self.units)

    def next_turn(self) -> None:
        """Continue the waiting work: a slice per account, round robin, while there is time."""
        self._turn += 1
        self._waking = self.crowded = False
        left = WORK_TURN_UNITS
        ready, self._ready = self._ready, deque()
        try:
            while ready and left > 0:
                account = ready.popleft()
                try:
                    # At least 1: waiters that spend nothing must not keep the turn from its end.
                    left -= max(self._serve(account, min(left, _SLICE_UNITS, self.units)), 1)
                finally:
                    if not account.waiting:
                        account.queued = False
                    elif account.spent < self.units:
                        ready.append(account)
                    else:
                        self._ready.append(account)
        finally:
            # Accounts that had no slice come first in the next turn.
            self._ready.extendleft(reversed(ready))
            if self._ready:
                self._wake()

    def _serve(self, account: Account, units: int) -> int:
        """Do one slice for one waiter of an account."""
        waiter = account.waiting.popleft()
        if account.turn != self._turn:
            account.turn = self._turn
            account.spent = 0
        self.current = account
        self.work.begin(units)
        try:
            waiter.go_on()
        except Exception as error:  # the other waiters go on
            self.failures.caught(getattr(waiter, "step", waiter.go_on), error)
        finally:
            spent = self.end()
        return spent


class Chore:
    """A long operation without a connection.

    Args:
        turns: the turns that it runs in.
        account: the account of its work.
        step: does a slice.

    Attributes:
        step: as given.
    """

    def __init__(self, turns: Turns, account: Account, step: Step) -> None:
        self._turns = turns
        self._account = account
        self.step = step

    def go_on(self) -> None:
        """Do a slice."""
        if not self.step():
            self._turns.wait(self._account, self)
