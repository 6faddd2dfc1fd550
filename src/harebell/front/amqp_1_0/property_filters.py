"""Property filters of AMQP Filter Expressions 1.0, which RabbitMQ has since 4.1, as selectors.

    amqp:properties-filter                a map of properties, each a symbol, and values
    amqp:application-properties-filter    a map of application properties, each a string, and values

All entries have to match. A value of null matches every value; a text that begins with `&s:` is a
suffix, with `&p:` a prefix, and with `&&` a text that begins with `&`. Numbers of any type compare.
"""

from __future__ import annotations

from math import isfinite
from typing import Any
from uuid import UUID

from harebell.model.filter.condition import compile_selector
from harebell.model.filter.errors import FilterError
from harebell.wire.v1.values import Char, Symbol, Timestamp, UInt, ULong

PROPERTIES = ("amqp:properties-filter", str(0x173))
APPLICATION_PROPERTIES = ("amqp:application-properties-filter", str(0x174))
"""Names and numbers of the descriptors."""
_ENTRIES = 16
"""As in RabbitMQ: every entry is tested with every message."""
_IDS = (str, ULong, UUID, bytes)
_TYPES: dict[str, tuple[type, ...]] = {
    "message-id": _IDS,
    "user-id": (bytes,),
    "to": (str,),
    "subject": (str,),
    "reply-to": (str,),
    "correlation-id": _IDS,
    "content-type": (Symbol,),
    "content-encoding": (Symbol,),
    "absolute-expiry-time": (Timestamp,),
    "creation-time": (Timestamp,),
    "group-id": (str,),
    "group-sequence": (UInt,),
    "reply-to-group-id": (str,),
}


def selector_of(name: str, value: Any) -> str | None:
    """Return the selector that a property filter means; None if it is none, or is wrong.

    Args:
        name: of its descriptor.
        value: a map.
    """
    if name not in (*PROPERTIES, *APPLICATION_PROPERTIES):
        return None
    if not isinstance(value, dict) or not 0 < len(value) <= _ENTRIES:
        return None
    test = _property if name in PROPERTIES else _application_property
    tests: list[str] = []
    for key, wanted in value.items():
        tested = test(key, wanted)
        if tested is None:
            return None
        tests.append(tested)
    text = " AND ".join(tests)
    try:
        compile_selector(text)
    except FilterError:
        return None
    return text


def _property(name: Any, wanted: Any) -> str | None:
    types = _TYPES.get(name) if type(name) is Symbol else None
    if types is None or type(wanted) not in types:
        return None
    return _test(f"properties.{name.replace('-', '_')}", wanted)


def _application_property(name: Any, wanted: Any) -> str | None:
    if type(name) is not str:
        return None
    column = f"application_properties[{_quoted(name)}]"
    return f"{column} IS NOT NULL" if wanted is None else _test(column, wanted)


def _test(column: str, wanted: Any) -> str | None:
    """Return the selector of one entry; None if no message can be compared with the value."""
    if isinstance(wanted, UUID):
        wanted = wanted.urn
    if isinstance(wanted, bytes):
        wanted = wanted.decode("utf-8", "replace")
    elif type(wanted) is str and wanted.startswith("&"):
        return _modified(column, wanted)
    if isinstance(wanted, bool):
        return f"{column} = {str(wanted).upper()}"
    if isinstance(wanted, str | Char):
        return f"{column} = {_quoted(wanted)}"
    if isinstance(wanted, int) or (isinstance(wanted, float) and isfinite(wanted)):
        return f"{column} = {wanted!r}"
    return None


def _modified(column: str, wanted: str) -> str | None:
    """Return the selector of a text that begins with `&`; None if it is wrong."""
    if wanted.startswith("&&"):
        return f"{column} = {_quoted(wanted[1:])}"
    kind, text = wanted[:3], wanted[3:]
    for special in "\\%_":
        text = text.replace(special, "\\" + special)
    if kind == "&p:":
        text += "%"
    elif kind == "&s:":
        text = "%" + text
    else:
        return None
    return f"{column} LIKE {_quoted(text)} ESCAPE '\\'"


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
