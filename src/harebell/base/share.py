"""What users share: a count, of which each user may have a part, and a cache that evicts fairly.

No user may use up what others need. So a user has at most a part of a count, and the one who asks
for more is refused; what others have stays. A user who has little is never refused, however many
there are: the count is then exceeded by that little for each user.

A cache whose entries can be made again evicts instead: the oldest entry of the owner who has most.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from harebell.base.errors import ErrorKind, Refusal

PARTS = 4
"""A user may have at most a count divided by this number."""
FREE_PARTS = 64
"""A count divided by this number, and at least one, is never refused to a user."""


class Shares:
    """A count that users share.

    Args:
        what: what is counted, in the plural.
        limit: how many there may be.
        remedy: what to do at the limit, as the end of a sentence.

    Attributes:
        limit: as given.
        share: how many of them one user may have.
        free: how many a user may have although there are as many as there may be.
        used: how many there are.
    """

    __slots__ = ("_held", "_remedy", "_what", "free", "limit", "share", "used")

    def __init__(self, what: str, limit: int, remedy: str) -> None:
        self.limit = limit
        self.share = max(limit // PARTS, 1)
        self.free = max(limit // FREE_PARTS, 1)
        self.used = 0
        self._what = what
        self._remedy = remedy
        self._held: dict[str, int] = {}

    def of(self, user: str) -> int:
        """Return how many a user has."""
        return self._held.get(user, 0)

    def objection(self, user: str, amount: int = 1) -> str:
        """Return why a user may not have more, or ""."""
        held = self._held.get(user, 0)
        whose = f"user '{user}'" if user else "the control socket"
        if held + amount > self.share:
            return (
                f"{whose} has {held} {self._what}, and one user may have {self.share}: "
                f"{self._remedy}"
            )
        if self.used + amount > self.limit and held + amount > self.free:
            return (
                f"there are {self.used} {self._what}, of which {whose} has {held}, and there may "
                f"be {self.limit}: {self._remedy}"
            )
        return ""

    def check(
        self,
        user: str,
        amount: int = 1,
        *,
        cannot: str = "",
        kind: ErrorKind = ErrorKind.PRECONDITION_FAILED,
    ) -> None:
        """Refuse a user whose share is full, or who has more than `free` while there is no room.

        Args:
            user: the name of the user; "" for the control socket.
            amount: how many the user asks for.
            cannot: what is refused, before a colon.
            kind: of the refusal.

        Raises:
            Refusal: with the limit, and what to do.
        """
        objection = self.objection(user, amount)
        if objection:
            raise Refusal(kind, f"{cannot}: {objection}" if cannot else objection)

    def add(self, user: str, amount: int = 1) -> None:
        """Count more of a user; `check` comes before, or came before a restart."""
        self.used += amount
        left = self._held.get(user, 0) + amount
        if left:
            self._held[user] = left
        else:
            self._held.pop(user, None)

    def remove(self, user: str, amount: int = 1) -> None:
        """Count fewer of a user."""
        self.add(user, -amount)


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class FairCache(Generic[K, V]):
    """Entries of owners; one too many evicts the oldest of the owner who has most.

    Args:
        limit: how many entries there may be.
    """

    __slots__ = ("_entries", "_owned", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # In the order in which they were put, like those of each owner.
        self._entries: dict[K, tuple[str, V]] = {}
        self._owned: dict[str, dict[K, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry[1]

    def put(self, owner: str, key: K, value: V) -> list[V]:
        """Put an entry at the end; return the values that were evicted for it."""
        self.pop(key)
        self._entries[key] = (owner, value)
        self._owned.setdefault(owner, {})[key] = None
        evicted: list[V] = []
        while len(self._entries) > self.limit:
            largest = max(self._owned.values(), key=len)
            gone = self.pop(next(iter(largest)))
            if gone is not None:
                evicted.append(gone)
        return evicted

    def pop(self, key: K) -> V | None:
        """Remove an entry and return its value; None if there is none."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        owner, value = entry
        owned = self._owned[owner]
        del owned[key]
        if not owned:
            del self._owned[owner]
        return value

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield keys and values, the oldest first."""
        for key, (_, value) in self._entries.items():
            yield key, value

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._owned.clear()
