"""Count wrong passwords, and let further guesses wait.

Wrong passwords count for every version of AMQP and HTTP together: by address, by user, and by both.
After too many of them, passwords for a user from an address wait for each other before their
outcome is told; when too many wait, further ones are refused for now. So a guess takes its time at
every door, and a user waits only for guesses from the same address. Many clients may share an
address: a user who has logged in from it before waits only after too many guesses at this user from
there, and even then the right password does not wait.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from harebell.base.errors import HarebellError
from harebell.base.share import FairCache
from harebell.front.common.failure_counts import FailureCount, count_failure
from harebell.front.limits import (
    GUESS_PROOF_SECONDS,
    GUESS_SECONDS,
    GUESS_WAIT_SECONDS,
    GUESSES_BLOCK_SECONDS,
    LOGIN_SOURCES,
    NEGOTIATION_BLOCK_SECONDS,
    NEGOTIATION_FAILURES,
)

Who = tuple[str | None, str | None]
"""The address and the user of logins; None for all."""


class TooManyGuesses(HarebellError):
    """A password is not compared now.

    Args:
        user: the user of the login.
        address: the address of the peer.
        seconds: after how many seconds it may be.
    """

    def __init__(self, user: str, address: str, seconds: float) -> None:
        self.seconds = ceil(seconds)
        where = address or "this machine"
        super().__init__(
            f"too many passwords of user '{user}' came from {where}: wait {self.seconds} s"
        )


class PasswordGuesses:
    """The wrong passwords that came, by address and user."""

    def __init__(self) -> None:
        self._logins: FairCache[Who, FailureCount] = FairCache(LOGIN_SOURCES)
        self._guesses: FairCache[Who, FailureCount] = FairCache(LOGIN_SOURCES)
        # When the right password may pass by again, and the turn of the last guess.
        self._known: FairCache[Who, float] = FairCache(LOGIN_SOURCES)
        self._turns: FairCache[Who, float] = FairCache(LOGIN_SOURCES)

    def refused(
        self,
        address: str,
        user: str,
        now: float,
        log: Callable[[str, str], None],
        *,
        guess: bool = True,
    ) -> bool:
        """Count a refused login; True if there were too many, so that the log has no line of it.

        Args:
            address: the address of the peer.
            user: the user of the login.
            now: in seconds.
            log: takes a line when there are too many with this one.
            guess: whether it had a password that was compared.
        """
        for who in ((address, None), (None, user)) if guess else ():
            count_failure(self._guesses, address, who, now, GUESSES_BLOCK_SECONDS)
        key = (address, user)
        record = self._logins.get(key)
        if record is not None and record.blocked(now):
            return True
        if count_failure(self._logins, address, key, now):
            log(
                "warning",
                f"user '{user}' was refused {NEGOTIATION_FAILURES} times from "
                f"{address or 'a local socket'}: the log has no line of more of them for "
                f"{NEGOTIATION_BLOCK_SECONDS:g} s, and passwords of this user from there wait for "
                "each other",
            )
        return False

    def wait(
        self,
        address: str,
        user: str,
        now: float,
        *,
        right: bool,
        longest: float = GUESS_WAIT_SECONDS,
    ) -> float:
        """Return how many seconds a password waits before its outcome is told; mostly 0.

        Args:
            address: the address of the peer.
            user: the user of the login.
            now: in seconds.
            right: whether it is known to be right.
            longest: how many seconds it may wait.

        Raises:
            TooManyGuesses: it would wait longer.
        """
        if not self.exhausted(address, user, now):
            return 0.0
        who = (address, user)
        proved = self._known.get(who)
        if proved is not None and proved <= now:
            # Wrong ones count too: otherwise this would tell them apart as fast as they come.
            self._known.put(address, who, now + GUESS_PROOF_SECONDS)
            if right:
                return 0.0
        # Behind the guess before: guesses on many connections take as long as on one.
        turn = max(self._turns.get(who) or 0.0, now) + GUESS_SECONDS
        if turn - now > longest:
            raise TooManyGuesses(user, address, turn - now)
        self._turns.put(address, who, turn)
        return turn - now

    def exhausted(self, address: str, user: str, now: float) -> bool:
        """True if there were too many wrong passwords, so that another guess has to wait.

        They count by address and by user; only their own, if the user has logged in from the
        address before.
        """
        own = self._logins.get((address, user))
        if own is not None and own.blocked(now):
            return True
        if not self._guesses or self._known.get((address, user)) is not None:
            return False
        guesses = [self._guesses.get(who) for who in ((address, None), (None, user))]
        return any(each is not None and each.blocked(now) for each in guesses)

    def opened(self, address: str, user: str) -> None:
        """Forget the refused logins of a user that has opened a connection from an address."""
        if self._logins:
            self._logins.pop((address, user))
        self.accepted(address, user)

    def accepted(self, address: str, user: str) -> None:
        """Note that a user has logged in from an address."""
        if self._known.get((address, user)) is None:
            self._known.put(address, (address, user), 0.0)
