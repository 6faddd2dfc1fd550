"""Messages for peers whose field tables know five types of value: those of 0-8 and 0-9.

Headers of other types are written as `harebell.wire.v09.plain_fields` says; so are those that the
broker adds to a delivery, the offset in a stream and the count of failed deliveries. A message
that has nothing of the kind goes out as it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from harebell.base.limits import CONVERSIONS_KEPT_BYTES, CONVERSIONS_KEPT_COUNT
from harebell.base.message import Message, new_message
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.edit import edited
from harebell.wire.v09.plain_fields import is_plain, made_plain

_HEADERS = 0x2000
_BEFORE = (0x8000, 0x4000)
"""The flags of content-type and content-encoding, which stand before the headers."""
_SIZE = 4


def _place(raw: bytes) -> int:
    """Where the header table of a property list that has one begins."""
    flags = int.from_bytes(raw[:2])
    at = 2
    for flag in _BEFORE:
        if flags & flag:
            at += 1 + raw[at]
    return at


def _plain(raw: bytes) -> bytes:
    """A property list whose headers have the five types only."""
    if not int.from_bytes(raw[:2]) & _HEADERS:
        return raw
    at = _place(raw)
    if is_plain(raw, at):
        return raw
    table, end = made_plain(raw, at)
    return raw[:at] + table + raw[end:]


def plain_list(raw: bytes) -> bytes:
    """A property list of class basic, file or stream as such a peer can read it.

    Content-type, content-encoding and headers come first in all of them.
    """
    return _kept(raw) if len(raw) <= CONVERSIONS_KEPT_BYTES else _plain(raw)


_kept = lru_cache(CONVERSIONS_KEPT_COUNT)(_plain)


def plain_message(message: Message) -> Message:
    """A message of class basic as such a peer can read it."""
    raw = message.raw
    added: dict[str, Any] = {}
    if message.offset >= 0:
        added["x-stream-offset"] = message.offset
    if message.deliveries > 0:
        added["x-delivery-count"] = message.deliveries
    if added:
        raw = edited(raw, added)
    raw = _kept(raw) if len(raw) <= CONVERSIONS_KEPT_BYTES else _plain(raw)
    # Equal is enough: what the cache gives back may be the list of an earlier, equal message.
    if raw == message.raw:
        return message
    found = new_message(message.exchange, message.routing_key, parse_properties(raw), message.body)
    found.origin = message.origin
    found.due = message.due
    return found
