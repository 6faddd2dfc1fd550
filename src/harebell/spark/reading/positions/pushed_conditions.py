"""Translate filters of Spark into conditions of the broker's filter language.

Spark applies every filter again, so a condition may select more rows than the filter, but none
fewer. What the two could see differently is not translated: the column of a text that is not UTF-8
says `base64:` and base64, and the broker's filter has the octets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import datasource as ds

from harebell.model.filter import FilterError, compile_filter

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
_SYMBOLS: tuple[tuple[type, str], ...] = (
    (ds.EqualTo, "="),
    (ds.EqualNullSafe, "="),
    (ds.GreaterThan, ">"),
    (ds.GreaterThanOrEqual, ">="),
    (ds.LessThan, "<"),
    (ds.LessThanOrEqual, "<="),
)
_ENCODED = "base64:"
_LONGEST = 255
"""Octets of the longest text in these columns."""
_MAX_VALUES = 100


def condition_of(one: ds.Filter) -> str | None:
    """Return the condition that a filter implies; None if it has none."""
    column: tuple[str, ...] = getattr(one, "attribute", ())
    value = getattr(one, "value", None)
    name = ".".join(column)
    if column in _TEXTS:
        return _of_text(one, name, value)
    if column in _NUMBERS:
        return _compared(one, name, value, int)
    if column in _FLAGS and isinstance(one, ds.EqualTo | ds.EqualNullSafe):
        return _compared(one, name, value, bool)
    return None


def joined(where: str | None, conditions: Iterable[str]) -> str | None:
    """Return one condition; those that would make it too long for a filter are left to Spark.

    Args:
        where: the condition of the user, which is always part of it; None without one.
        conditions: what filters imply.
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


def _of_text(one: ds.Filter, name: str, value: Any) -> str | None:
    if isinstance(one, ds.EqualTo | ds.EqualNullSafe):
        return f"{name} = {_quoted(value)}" if _is_plain(value) else None
    if isinstance(one, ds.In):
        return _listed(name, one.value, _is_plain, _quoted)
    # A beginning of `base64:` also selects encoded texts, which the broker sees as octets.
    if isinstance(one, ds.StringStartsWith) and _is_plain(value) and not _ENCODED.startswith(value):
        return f"{name} LIKE {_quoted(_escaped(value) + '%')}"
    return None


def _compared(one: ds.Filter, name: str, value: Any, kind: type) -> str | None:
    if isinstance(one, ds.In):
        return _listed(name, one.value, lambda each: type(each) is kind, str)
    for of, symbol in _SYMBOLS:
        # Not isinstance: a bool is an int of Python, and no number of the filter language.
        if isinstance(one, of) and type(value) is kind:
            return f"{name} {symbol} {str(value).upper()}"
    return None


def _listed(
    name: str, values: Any, fits: Callable[[Any], bool], shown: Callable[[Any], str]
) -> str | None:
    # A null in the list selects nothing.
    present = [each for each in values if each is not None]
    if not present or len(present) > _MAX_VALUES or not all(map(fits, present)):
        return None
    return f"{name} IN ({', '.join(map(shown, present))})"


def _is_plain(value: Any) -> bool:
    """True for a text that the column can only have for exactly these octets."""
    return isinstance(value, str) and len(value) <= _LONGEST and not value.startswith(_ENCODED)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    """Return a text as a pattern of LIKE that matches only it."""
    return "".join("\\" + each if each in "\\%_" else each for each in text)
