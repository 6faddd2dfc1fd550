"""Convert headers for peers whose field tables have five types: those of 0-8 and 0-9.

`harebell.wire.v09.plain_fields` converts headers of other types, and those that the broker adds to
a delivery: the offset in a stream and the delivery count. A message without such headers is not
changed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from harebell.base.message import Message, new_message
from harebell.front.limits import CONVERSIONS_KEPT_BYTES, CONVERSIONS_KEPT_COUNT
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.edit import edited, headers_span
from harebell.wire.v09.plain_fields import PLAIN_TAGS, is_plain, made_plain, tags_of


def tags_in(raw: bytes) -> frozenset[int]:
    """Return the types of the values in the headers of a property list."""
    begin, end = headers_span(raw)
    return tags_of(raw, begin) if begin < end else frozenset()


def _plain(raw: bytes, known: frozenset[int]) -> bytes:
    """Convert the headers of a property list to types that the peer knows."""
    begin, end = headers_span(raw)
    if begin == end or is_plain(raw, begin, known):
        return raw
    return raw[:begin] + made_plain(raw, begin, known)[0] + raw[end:]


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
    plain_message = new_message(
        message.exchange, message.routing_key, parse_properties(raw), message.body
    )
    plain_message.origin = message.origin
    plain_message.due = message.due
    return plain_message
