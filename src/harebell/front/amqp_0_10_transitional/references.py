"""References: message bodies that arrive in pieces (transitional 0-10, class message).

    open(r)  append(r) append(r) ...  checkpoint(r, id) ...  close(r)
             transfer(r) anywhere between open and close: published when r is closed

    resume(r, id) in a later session opens r again with what its last checkpoint saved, and the
    sender continues from the offset in message.offset.

A reference belongs to one session and ends with it. Its bytes count as memory of incomplete
messages, so a publisher is blocked by them as by a long basic content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.gauge import Gauge
from harebell.base.work import Work
from harebell.front.common.checkpoints import Checkpoints, Key
from harebell.front.common.errors import hard, soft
from harebell.front.limits import REFERENCE_NAME_BYTES, REFERENCES_PER_SESSION

_CLASS = 120
_FREED_PER_UNIT = 13_000
"""Bytes that the system takes back in a microsecond."""
_TINY = 4096
"""Bytes of a piece below which it is joined to its neighbours at once."""


class Reference:
    """An incomplete body.

    Attributes:
        size: bytes so far.
        waiting: the transfers that name the reference, in order.
        saved: the key of its last checkpoint; None without one.
    """

    __slots__ = ("_marked", "_parts", "saved", "size", "waiting")

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray] = []
        # The number of parts that a checkpoint has, and their bytes.
        self._marked = (0, 0)
        self.size = 0
        self.waiting: list[Any] = []
        self.saved: Key | None = None

    def append(self, data: bytes) -> None:
        """Add a piece; small ones are joined, so that they take no more memory than their bytes."""
        self.size += len(data)
        if len(data) >= _TINY:
            self._parts.append(data)
        elif data:
            # Parts of a checkpoint are shared with it, so they do not grow.
            last = self._parts[-1] if len(self._parts) > self._marked[0] else None
            if isinstance(last, bytearray):
                last += data
            else:
                self._parts.append(bytearray(data))

    def mark(self) -> tuple[int, list[bytes]]:
        """Mark everything received so far as part of a checkpoint.

        Returns:
            The number of bytes that were marked before, and the pieces since.
        """
        parts, before = self._marked
        since = [b"".join(self._parts[parts:])] if len(self._parts) > parts else []
        self._parts[parts:] = since
        self._marked = (len(self._parts), self.size)
        return before, since

    def whole(self) -> list[bytes]:
        """Return all parts, after `mark`."""
        return [bytes(part) for part in self._parts]

    def drop_part(self) -> int:
        """Free the last part of a body that is dropped; return its bytes, 0 if none is left."""
        return len(self._parts.pop()) if self._parts else 0

    def body(self) -> bytes:
        """The whole body, in one piece."""
        if len(self._parts) == 1:
            (only,) = self._parts
            return bytes(only)
        return b"".join(self._parts)


class References:
    """The open references of one session.

    Args:
        gauge: counts the bytes of incomplete bodies.
        checkpoints: keeps saved bodies after the end of the session.
        key: makes the key of a checkpoint from its identifier.
        limit: the most bytes of a body.
    """

    def __init__(
        self, gauge: Gauge, checkpoints: Checkpoints, key: Callable[[str], Key], limit: int
    ) -> None:
        self._gauge = gauge
        self._checkpoints = checkpoints
        self._key = key
        self._limit = limit
        self._open: dict[bytes, Reference] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, name: bytes) -> Reference:
        """message.open: an empty body.

        Raises:
            ProtocolError: 503 for a name that is open, 506 for too many.
        """
        return self._begin(name, 60)

    def append(self, name: bytes, data: bytes) -> None:
        """message.append.

        Raises:
            ProtocolError: 503 for a name that is not open, 311 for a body over the limit.
        """
        reference = self.get(name, 80)
        if reference.size + len(data) > self._limit:
            raise too_large(reference.size + len(data), self._limit, 80)
        reference.append(data)
        self._count(len(data))

    def close(self, name: bytes) -> Reference:
        """message.close: end the body; its name can be used again.

        Raises:
            ProtocolError: 503 for a name that is not open.
        """
        reference = self.get(name, 70)
        del self._open[name]
        self._count(-reference.size)
        if reference.saved is not None:
            self._checkpoints.forget(reference.saved)
        return reference

    def checkpoint(self, name: bytes, identifier: str) -> None:
        """message.checkpoint: keep the received pieces after the end of the session.

        Raises:
            ProtocolError: 503 for a name that is not open.
        """
        reference = self.get(name, 90)
        key = self._key(identifier)
        before, since = reference.mark()
        if reference.saved is not None and reference.saved != key:
            # A body has one checkpoint, whatever identifiers the client gives it.
            self._checkpoints.forget(reference.saved)
        # Only the new pieces, unless another session has overwritten or dropped the checkpoint.
        if reference.saved == key and self._checkpoints.size(key) == before:
            self._checkpoints.save(key, before, since)
        else:
            self._checkpoints.save(key, 0, reference.whole())
        reference.saved = key

    def resume(self, name: bytes, identifier: str) -> int:
        """message.resume: open it with its last checkpoint; return the saved bytes.

        Raises:
            ProtocolError: 503 for a name that is open, 506 for too many.
        """
        reference = self._begin(name, 100)
        key = self._key(identifier)
        saved = self._checkpoints.load(key)
        if saved is None:
            # Not an error: the client sends the body from its beginning.
            return 0
        for piece in saved:
            reference.append(piece)
        reference.mark()
        reference.saved = key
        self._count(reference.size)
        return reference.size

    def get(self, name: bytes, method_id: int) -> Reference:
        """Return an open reference.

        Args:
            name: what the client calls it.
            method_id: the method that names it.

        Raises:
            ProtocolError: 503.
        """
        reference = self._open.get(name)
        if reference is None:
            raise hard(503, f"reference {name!r} is not open", _CLASS, method_id)
        return reference

    def release(self, work: Work) -> None:
        """Drop incomplete bodies of an ended session, in slices; checkpoints stay."""
        dropped = list(self._open.values())
        self._count(-sum(reference.size for reference in dropped))
        self._open.clear()

        def step() -> bool:
            while dropped:
                freed = dropped[-1].drop_part()
                if not freed:
                    dropped.pop()
                if work.charge(1 + freed // _FREED_PER_UNIT):
                    return False
            return True

        if dropped:
            work.later(step)

    def _begin(self, name: bytes, method_id: int) -> Reference:
        if name in self._open:
            raise hard(503, f"reference {name!r} is already open", _CLASS, method_id)
        if len(name) > REFERENCE_NAME_BYTES:
            text = f"the name of a reference has {len(name)} octets, at most {REFERENCE_NAME_BYTES}"
            raise hard(506, f"{text} are possible", _CLASS, method_id)
        if len(self._open) >= REFERENCES_PER_SESSION:
            text = (
                f"{REFERENCES_PER_SESSION} references are open on this session, which is the most"
            )
            raise hard(506, text, _CLASS, method_id)
        reference = self._open[name] = Reference()
        return reference

    def _count(self, byte_count: int) -> None:
        self._gauge.add(byte_count)
        self._gauge.unread += byte_count


def too_large(size: int, limit: int, method_id: int) -> Exception:
    """Make the error for a body over the configured limit."""
    text = f"message size {size} is larger than configured max size {limit}"
    return soft(311, text, _CLASS, method_id)
