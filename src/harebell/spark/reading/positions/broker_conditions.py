"""Conditions of the broker's filter language for comparisons of SQL.

An engine applies every comparison again, so a condition may select more messages, but none fewer.
What the two could see differently is not translated: the column of a text that is not UTF-8 says
`base64:` and base64, and the broker's filter has the octets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harebell.model.filter.condition import compile_filter
from harebell.model.filter.errors import FilterError

_NUMBERS = (("delivery_count",), ("properties", "delivery_mode"), ("properties", "priority"))
_TEXTS = (
    ("exchange",),
    ("routing_key",),
    *(
        ("properties", name)
        for name in (
            *("content_type", "content_encoding", "correlation_id", "reply_to", "expiration"),
            *("message_id", "type", "user_id", "app_id", "cluster_id"),
        )
    ),
)
_FLAGS = (("redelivered",),)
IN, BEGINS = "IN", "BEGINS"
_ORDERS = ("=", ">", ">=", "<", "<=")
_ENCODED = "base64:"
_LONGEST = 255
"""Octets of the longest text in these columns."""
_MAX_VALUES = 100


def compared(path: tuple[str, ...], symbol: str, values: Sequence[Any]) -> str | None:
    """Return the condition that a comparison implies; None if it has none.

    Args:
        path: the column, or the field of one.
        symbol: `=`, `>`, `>=`, `<`, `<=`, `IN` or `BEGINS`.
        values: the value; several with `IN`.
    """
    name = ".".join(path)
    # A null in the list selects nothing.
    present = [each for each in values if each is not None]
    if not present or len(present) > _MAX_VALUES or (symbol != IN and len(values) != 1):
        return None
    if path in _TEXTS:
        return _of_text(name, symbol, present)
    kind = int if path in _NUMBERS else bool if path in _FLAGS else None
    # Not isinstance: a bool is an int of Python, and no number of the filter language.
    if kind is None or not all(type(each) is kind for each in present):
        return None
    if symbol == IN and kind is int:
        return _listed(name, map(str, present))
    if symbol == "=" or (symbol in _ORDERS and kind is int):
        return f"{name} {symbol} {str(present[0]).upper()}"
    return None


def joined(where: str | None, conditions: Iterable[str]) -> str | None:
    """Return one condition; those that would make it too long for a filter are left out.

    Args:
        where: the condition of the user, which is always part of it; None without one.
        conditions: what comparisons imply.
    """
    whole = None if where is None else f"({where})"
    for one in dict.fromkeys(conditions):
        longer = one if whole is None else f"{whole} AND {one}"
        try:
            compile_filter(longer)
        except FilterError:
            continue
        whole = longer
    return whole


def _of_text(name: str, symbol: str, values: Sequence[Any]) -> str | None:
    if not all(map(_is_plain, values)):
        return None
    if symbol == "=":
        return f"{name} = {_quoted(values[0])}"
    if symbol == IN:
        return _listed(name, map(_quoted, values))
    # A beginning of `base64:` also selects encoded texts, which the broker sees as octets.
    if symbol == BEGINS and not _ENCODED.startswith(values[0]):
        return f"{name} LIKE {_quoted(_escaped(values[0]) + '%')}"
    return None


def _listed(name: str, shown: Iterable[str]) -> str:
    return f"{name} IN ({', '.join(shown)})"


def _is_plain(value: Any) -> bool:
    """True for a text that the column can only have for exactly these octets."""
    return isinstance(value, str) and len(value) <= _LONGEST and not value.startswith(_ENCODED)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    """Return a text as a pattern of LIKE that matches only it."""
    return "".join("\\" + each if each in "\\%_" else each for each in text)
