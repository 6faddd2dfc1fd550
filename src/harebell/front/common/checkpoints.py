"""Saved parts of bodies whose transfer was interrupted (message.checkpoint, message.resume).

A checkpoint survives its session, not the broker. The recipient may choose how much it keeps,
because a sender that gets a smaller offset sends the rest again. So checkpoints are in memory,
within a limit of bytes and time, of which each user has a share: a user's oldest are removed for
new ones of the same user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harebell.base.gauge import Gauge
from harebell.base.share import Shares
from harebell.front.limits import CHECKPOINT_COST_BYTES, CHECKPOINT_SECONDS, CHECKPOINTS_BYTES

Key = tuple[str, str, str]
"""The vhost, the user and the identifier that the sender chose."""

_MS = 1000
_TINY = 4096


class _Saved:
    """The saved part of one body."""

    __slots__ = ("at", "pieces", "size")

    def __init__(self, at: int) -> None:
        self.at = at
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Keep a piece; tiny ones are joined to save memory."""
        self.size += len(piece)
        if self.pieces and len(self.pieces[-1]) < _TINY and len(piece) < _TINY:
            self.pieces[-1] += piece
        elif piece:
            self.pieces.append(piece)


class Checkpoints:
    """The saved bodies of one broker.

    Args:
        gauge: counts them as memory in use.
        clock: for their age, in milliseconds.
        limit: the most bytes of all bodies.
    """

    def __init__(
        self,
        gauge: Gauge,
        clock: Callable[[], int],
        limit: int = CHECKPOINTS_BYTES,
    ) -> None:
        self._gauge = gauge
        self._clock = clock
        self._shares = Shares("bytes of interrupted bodies", limit, "resume them")
        self._saved: dict[Key, _Saved] = {}
        # In the order of their age, by user.
        self._owned: dict[str, dict[Key, None]] = {}

    def __len__(self) -> int:
        return len(self._saved)

    def save(self, key: Key, offset: int, pieces: Iterable[bytes]) -> None:
        """Save a body up to a mark.

        Args:
            key: the key of the body.
            offset: bytes of the body before the pieces; if so many are saved already, the pieces
                are added to them, otherwise they must be the whole body.
            pieces: the bytes up to the mark.
        """
        self.expire()
        saved = self._saved.get(key)
        if saved is not None and saved.size != offset:
            # The whole body comes instead (offset 0), or parts in between are lost.
            self.forget(key)
            saved = None
        if saved is None:
            if offset or not self._make_room(key, CHECKPOINT_COST_BYTES):
                return
            saved = _Saved(0)
            self._count(key, CHECKPOINT_COST_BYTES)
        else:
            # Both are put again at the end: `expire` and `_make_room` take the oldest first.
            del self._saved[key], self._owned[key[1]][key]
        saved.at = self._clock()
        self._saved[key] = saved
        self._owned.setdefault(key[1], {})[key] = None
        for piece in pieces:
            if not self._make_room(key, len(piece)):
                # What is saved stays: the sender resumes at the offset that it is given.
                return
            saved.add(piece)
            self._count(key, len(piece))

    def load(self, key: Key) -> list[bytes] | None:
        """Return the saved pieces; None if there are none, or they expired."""
        self.expire()
        checkpoint = self._saved.get(key)
        return None if checkpoint is None else checkpoint.pieces

    def size(self, key: Key) -> int:
        """Return the number of saved bytes."""
        checkpoint = self._saved.get(key)
        return 0 if checkpoint is None else checkpoint.size

    def forget(self, key: Key) -> None:
        """Drop the saved pieces."""
        checkpoint = self._saved.pop(key, None)
        if checkpoint is not None:
            owned = self._owned[key[1]]
            del owned[key]
            if not owned:
                del self._owned[key[1]]
            self._count(key, -(checkpoint.size + CHECKPOINT_COST_BYTES))

    def expire(self) -> None:
        """Drop expired bodies; saving moves a key to the end, so the oldest come first."""
        oldest = self._clock() - CHECKPOINT_SECONDS * _MS
        while self._saved:
            key, saved = next(iter(self._saved.items()))
            if saved.at > oldest:
                return
            self.forget(key)

    def _make_room(self, key: Key, byte_count: int) -> bool:
        """Drop older checkpoints of the user for more bytes; False if that is not enough."""
        user = key[1]
        while self._shares.objection(user, byte_count):
            oldest = next(iter(self._owned.get(user, ())), key)
            # The one that is being saved comes last: all others of the user are gone.
            if oldest == key:
                return False
            self.forget(oldest)
        return True

    def _count(self, key: Key, byte_count: int) -> None:
        self._shares.add(key[1], byte_count)
        self._gauge.add(byte_count)
