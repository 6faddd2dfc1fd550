"""Deduplication cache: a bounded memory of header values, with or without a TTL.

    an entry in the log   expiry, 8 bytes, milliseconds since 1970, 0 for never | digest, 16 bytes

A value is stored as a digest, so that all entries have the same size. If the cache is full, the
oldest entry is removed.
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


def digest(value: Any) -> bytes:
    """Return 16 bytes that are equal for equal header values of the same type only."""
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

    def seen(self, value: Any, ttl_ms: int, now: int) -> bool:
        """Return whether a value was seen; add it if not.

        Args:
            value: the value of the header.
            ttl_ms: how long a new value is kept; 0 for as long as there is room.
            now: milliseconds since 1970.
        """
        key = digest(value)
        known = self._entries.get(key)
        if known is not None:
            if not known[0] or now < known[0]:
                return True
            self._drop(key)
        while len(self._entries) >= self._size:
            self._drop(next(iter(self._entries)))
        self._add(key, now + ttl_ms if ttl_ms else 0)
        return False

    def knows(self, value: Any, now: int) -> bool:
        """Return whether a value was seen, and do not add it; the arguments are those of `seen`."""
        known = self._entries.get(digest(value))
        return known is not None and (not known[0] or now < known[0])

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

    def _drop(self, key: bytes) -> None:
        _, position = self._entries.pop(key)
        if self._log is not None:
            self._log.settle(position)

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
            self._drop(next(iter(self._entries)))
