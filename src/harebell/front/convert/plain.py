"""Convert headers for peers whose field tables have five types: those of 0-8 and 0-9.

`harebell.wire.v09.plain_fields` converts headers of other types, and those that the broker adds to
a delivery: the offset in a stream and the delivery count. A message without such headers is not
changed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from harebell.base.limits import CONVERSIONS_KEPT_BYTES, CONVERSIONS_KEPT_COUNT
from harebell.base.message import Message, new_message
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.edit import edited
from harebell.wire.v09.plain_fields import PLAIN_TAGS, is_plain, made_plain, tags_of

_HEADERS = 0x2000
_BEFORE = (0x8000, 0x4000)
"""The flags of content-type and content-encoding, which stand before the headers."""
_SIZE = 4


def _place(raw: bytes) -> int:
    """Return the offset of the header table in a property list that has one."""
    flags = int.from_bytes(raw[:2])
    at = 2
    for flag in _BEFORE:
        if flags & flag:
            at += 1 + raw[at]
    return at


def tags_in(raw: bytes) -> frozenset[int]:
    """Return the types of the values in the headers of a property list."""
    return tags_of(raw, _place(raw)) if int.from_bytes(raw[:2]) & _HEADERS else frozenset()


def _plain(raw: bytes, known: frozenset[int]) -> bytes:
    """Convert the headers of a property list to types that the peer knows."""
    if not int.from_bytes(raw[:2]) & _HEADERS:
        return raw
    at = _place(raw)
    if is_plain(raw, at, known):
        return raw
    table, end = made_plain(raw, at, known)
    return raw[:at] + table + raw[end:]


def plain_list(raw: bytes, known: frozenset[int] = PLAIN_TAGS) -> bytes:
    """Convert a property list of class basic, file or stream for such a peer.

    Content-type, content-encoding and headers come first in all of them.
    """
    return _kept(raw, known) if len(raw) <= CONVERSIONS_KEPT_BYTES else _plain(raw, known)


_kept = lru_cache(CONVERSIONS_KEPT_COUNT)(_plain)


def plain_message(message: Message, known: frozenset[int] = PLAIN_TAGS) -> Message:
    """Convert a message of class basic for such a peer.

    Args:
        message: a message as it was published.
        known: the types of values that the peer knows: the five, and those that it has sent.
    """
    raw = message.raw
    added: dict[str, Any] = {}
    if message.offset >= 0:
        added["x-stream-offset"] = message.offset
    if message.deliveries > 0:
        added["x-delivery-count"] = message.deliveries
    if added:
        raw = edited(raw, added)
    raw = plain_list(raw, known)
    # Compare by value: the cache may return the list of an earlier, equal message.
    if raw == message.raw:
        return message
    found = new_message(message.exchange, message.routing_key, parse_properties(raw), message.body)
    found.origin = message.origin
    found.due = message.due
    return found
