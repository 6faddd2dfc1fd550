"""Deduplication cache: a bounded memory of header values, with or without a TTL.

    an entry in the log   expiry, 8 bytes, milliseconds since 1970, 0 for never | digest, 16 bytes

The expiry is big-endian. A value is stored as a digest, so that all entries have the same size. If
the cache is full, the oldest entry is removed.
"""

from __future__ import annotations

import hashlib
from typing import Any

from harebell.base.message import Message, Properties
from harebell.base.ports import Log
from harebell.model.binding import frozen

HEADER = "x-deduplication-header"
_DIGEST_BYTES = 16
_EXPIRY_BYTES = 8
_NO_PROPERTIES = Properties(b"\0\0")
_NO_ENTRY = (0, -1)
_EXPIRED = (-1, -1)


def digest(value: Any) -> bytes:
    """Return 16 bytes that are equal for equal header values of the same type only."""
    # `frozen` names the types, so 1, true and "1" are three values.
    text = repr(frozen(value)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


class DedupCache:
    """The values that were seen, oldest first.

    Args:
        size: the most entries.
        log: stores the entries, for a restart; None to keep them in memory only.
        now: milliseconds since 1970.
    """

    def __init__(self, size: int, log: Log | None = None, now: int = 0) -> None:
        self._size = size
        self._log = log
        self._entries: dict[bytes, tuple[int, int]] = {}
        if log is not None:
            self._read(log, now)

    def __len__(self) -> int:
        return len(self._entries)

    def knows(self, key: bytes, now: int) -> bool:
        """Return whether a value was seen.

        Args:
            key: the digest of the value.
            now: milliseconds since 1970.
        """
        expiry, _ = self._entries.get(key, _EXPIRED)
        return not expiry or now < expiry

    def add(self, key: bytes, ttl_ms: int, now: int) -> None:
        """Add a value that is not known.

        Args:
            key: the digest of the value.
            ttl_ms: how long it is kept; 0 for as long as there is room.
            now: milliseconds since 1970.
        """
        # Dropped first, so that the value is the newest of the dictionary afterwards.
        self.drop(key)
        while len(self._entries) >= self._size:
            self.drop(next(iter(self._entries)))
        self._add(key, now + ttl_ms if ttl_ms else 0)

    def drop(self, key: bytes) -> None:
        """Remove a value, if the cache has it."""
        _, position = self._entries.pop(key, _NO_ENTRY)
        if self._log is not None and position >= 0:
            self._log.settle(position)

    def clear(self) -> None:
        """Remove all entries and the log: the exchange was deleted."""
        self._entries.clear()
        if self._log is not None:
            self._log.delete()

    def _add(self, key: bytes, expiry: int) -> None:
        position = -1
        if self._log is not None:
            body = expiry.to_bytes(_EXPIRY_BYTES) + key
            position = self._log.append(Message("", "", _NO_PROPERTIES, body))
        self._entries[key] = (expiry, position)

    def _read(self, log: Log, now: int) -> None:
        """Read the entries of the log that have not expired."""
        position = log.first()
        while position < log.end():
            entry = log.read(position)
            if entry is not None and len(entry.body) == _EXPIRY_BYTES + _DIGEST_BYTES:
                expiry = int.from_bytes(entry.body[:_EXPIRY_BYTES])
                if not expiry or now < expiry:
                    self._entries[entry.body[_EXPIRY_BYTES:]] = (expiry, position)
                else:
                    log.settle(position)
            position = log.next(position + 1)
        while len(self._entries) > self._size:
            self.drop(next(iter(self._entries)))
