"""Changes to the sections of AMQP 1.0 before a body, by the headers that the model knows.

    before   header (durable, priority, ttl) | annotations | properties | application properties
    after    header (durable, priority)      | annotations'| the same octets

The bare message, which is the properties, the application properties and the body, leaves the
broker as it came: a signature of its publisher stays valid. A header of the model is an annotation:

    CC                       x-cc
    x-death                  x-opt-deaths
    x-...                    the annotation of that name
    any other                an application property
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from harebell.base.values import SectionValue
from harebell.kernels.sections import (
    APPLICATION_PROPERTIES,
    HEADER,
    MESSAGE_ANNOTATIONS,
    section,
    skip,
)
from harebell.wire.convert import deaths
from harebell.wire.convert import names_1_0 as names
from harebell.wire.convert.section_parts import compound_begin
from harebell.wire.convert.values_1_0 import put_compound, put_sized, put_value, text_of
from harebell.wire.v09.fields import encode_entry

_STRING, _SYMBOL = 0xA1, 0xA3
_NULL = 0x40
_TTL = 2


class Milliseconds(int):
    """A time in milliseconds since 1970, which is an annotation of the type timestamp."""


def edited(
    raw: bytes,
    changes: Mapping[str, Any],
    *,
    keep_ttl: bool = True,
    died: datetime | None = None,
) -> bytes:
    """Return sections with some headers set or removed.

    Args:
        raw: well-formed sections, as they were published.
        changes: headers and their new values; None removes a header.
        keep_ttl: False removes the time to live.
        died: when the last event of the history happened that the changes have.

    Raises:
        TypeError, ValueError: a value cannot stand in a section; the text names its key.
    """
    annotations: dict[bytes, bytes] = {}
    application: dict[bytes, bytes] = {}
    removed: set[bytes] = set()
    for name, value in changes.items():
        octets = name.encode(errors="surrogateescape")
        if octets == names.BCC_HEADER:
            continue  # 1.0 does not have it
        annotation = _annotation(octets)
        if annotation is None:
            removed.add(octets)
            if value is not None:
                application[octets] = _encoded(name, value)
            continue
        removed |= {octets, annotation} if octets != names.CC_HEADER else {annotation}
        if value is not None:
            annotations |= _history(name, value, annotation, died)
    header, behind = b"", b""
    kept: dict[bytes, bytes] = {}
    offset = 0
    while offset < len(raw):
        code, begin, after = section(raw, offset, len(raw))
        if code == HEADER:
            header = raw[offset:after] if keep_ttl else _without_ttl(raw, begin, after)
        elif code == MESSAGE_ANNOTATIONS:
            kept = _entries(raw, begin, after, removed)
        elif code == APPLICATION_PROPERTIES and (
            application or any(name in raw[begin:after] for name in removed)
        ):
            behind += _map(code, _entries(raw, begin, after, removed), application, _STRING)
            application = {}
        else:
            behind += raw[offset:after]
        offset = after
    behind += _map(APPLICATION_PROPERTIES, {}, application, _STRING)
    return header + _map(MESSAGE_ANNOTATIONS, kept, annotations, _SYMBOL) + behind


def _annotation(name: bytes) -> bytes | None:
    """Return the annotation that a header is; None for an application property."""
    if name == names.CC_HEADER:
        return names.CC
    if name == names.X_DEATH:
        return names.DEATHS
    return name if name.startswith(b"x-") and name.isascii() else None


def _history(name: str, value: Any, annotation: bytes, died: datetime | None) -> dict[bytes, bytes]:
    """Return the annotation of a header."""
    if annotation == names.DEATHS:
        if died is not None and isinstance(value, list) and value:
            value = [{**value[0], deaths.LAST_TIME: died}, *value[1:]]
        octets = deaths.to_annotation(value)
        if octets is not None:
            return {annotation: octets}
        # It is no history as the broker writes it.
        annotation = names.X_DEATH
    return {annotation: _encoded(name, value)}


def _encoded(name: str, value: Any) -> bytes:
    if isinstance(value, Milliseconds):
        return b"\x83" + value.to_bytes(8, signed=True)
    if isinstance(value, SectionValue):
        return bytes(value)
    entry = encode_entry(name, value)
    out = bytearray()
    put_value(out, entry, 1 + entry[0], 1)
    return bytes(out)


def _entries(raw: bytes, begin: int, after: int, removed: set[bytes]) -> dict[bytes, bytes]:
    """Return the encoded keys and values of a map, without those that are removed."""
    kept: dict[bytes, bytes] = {}
    key = compound_begin(raw, begin)
    while key < after:
        value = skip(raw, key, after)
        end = skip(raw, value, after)
        if text_of(raw, key, value) not in removed:
            kept[raw[key:value]] = raw[value:end]
        key = end
    return kept


def _map(code: int, kept: dict[bytes, bytes], added: dict[bytes, bytes], key: int) -> bytes:
    """Return a section with a map; nothing if the map is empty."""
    content = bytearray(b"".join(name + value for name, value in kept.items()))
    for name, value in added.items():
        put_sized(content, key, name)
        content += value
    if not content:
        return b""
    out = bytearray((0, 0x53, code))
    put_compound(out, 0xC1, 2 * (len(kept) + len(added)), content)
    return bytes(out)


def _without_ttl(raw: bytes, begin: int, after: int) -> bytes:
    """Return a header section with the same fields but the time to live."""
    fields: list[bytes] = []
    offset = compound_begin(raw, begin)
    while offset < after:
        end = skip(raw, offset, after)
        fields.append(raw[offset:end] if len(fields) != _TTL else bytes((_NULL,)))
        offset = end
    out = bytearray((0, 0x53, HEADER))
    if fields:
        put_compound(out, 0xC0, len(fields), bytearray(b"".join(fields)))
    else:
        out.append(0x45)
    return bytes(out)
