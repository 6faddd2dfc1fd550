"""Compare values of messages as SQL does: the answer may also be unknown, which is None.

A number, a truth value or a time beside a text is compared with what the text stands for, if it
stands for one. All other values of different types are not comparable: the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from typing import Any

Truth = bool | None
Compare = Callable[[Any, Any], Truth]

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": eq,
    "==": eq,
    "!=": ne,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_TRUTHS = {"true": True, "false": False}


def comparison(symbol: str) -> Compare:
    """Return the function of an operator."""
    apply = _OPERATORS[symbol]
    orders = symbol not in ("=", "==", "!=", "<>")

    def compare(left: Any, right: Any) -> Truth:
        pair = aligned(left, right)
        if pair is None:
            return None
        left, right = pair
        if orders and isinstance(left, bool | list | dict):
            return None
        return bool(apply(left, right))

    return compare


def aligned(left: Any, right: Any) -> tuple[Any, Any] | None:
    """Return two values of one type that can be compared; None if there are none."""
    if left is None or right is None:
        return None
    left, right = _plain(left), _plain(right)
    if type(left) is type(right):
        return left, right
    if isinstance(left, str):
        left = _meant(left, right)
    elif isinstance(right, str):
        right = _meant(right, left)
    if left is None or right is None or isinstance(left, bool) != isinstance(right, bool):
        return None
    if isinstance(left, datetime) != isinstance(right, datetime):
        left, right = _seconds(left), _seconds(right)
    if type(left) is type(right) or (_is_number(left) and _is_number(right)):
        return left, right
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _meant(text: str, beside: Any) -> Any:
    """Return what a text stands for beside a value of another type; None if it does not."""
    if isinstance(beside, bool):
        return _TRUTHS.get(text.lower())
    if isinstance(beside, datetime):
        return time_of(text)
    return number_of(text) if _is_number(beside) else None


def number_of(text: str) -> int | float | None:
    """Return the number that a text stands for; None if it is none."""
    if len(text) > _NUMBER_CHARACTERS:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


_NUMBER_CHARACTERS = 40


def time_of(text: str) -> datetime | None:
    """Return the time that a text stands for, in UTC unless it says otherwise; None if none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _seconds(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value
