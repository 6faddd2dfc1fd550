"""Evaluate conditions on messages, with three truth values; conditions.pyx does the same in C.

A condition is a tree of tuples. Its leaves find what they need in the encoded message, so a message
that is looked at costs no object where the leaves are headers and properties:

    value c            a constant                          and, or x ...     not x
    header name        a value of the header table         = <> < <= > >=    left right mixed
    property name      a property                          + - * / %         left right
    get function       of the decoded message              neg x             else x other
    like x match octets kinds                              match x function  null x
    native x else      x for a message of 1.0, else other  in mixed x y ...
    between (mixed >=, mixed <=) x low high

Values are None (no value), bool, int, float and str; all others are opaque, and only `mixed` and
the functions look into them. A comparison with None is unknown. Numbers compare with numbers, texts
with texts, and truth values are equal or not. For every other pair `mixed` decides; without it the
comparison is false.

Properties are those of class basic, and those that only 1.0 has. With `plain` a message of 1.0 has
its own values for the properties of basic, too.

`kinds` of a pattern says what each of its `octets` is: LITERAL, ANY_CHARACTER or ANY_TEXT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Protocol

from harebell.base.message import FAMILY_1_0, FAMILY_1_0_SECTIONS, Message

LITERAL, ANY_CHARACTER, ANY_TEXT = 0, 1, 2

Node = tuple[Any, ...]
_Get = Callable[[Any], Any]
_Compare = Callable[[Any, Any], bool | None]
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INT64 = 1 << 63
_ONLY_1_0 = frozenset(
    (
        *("subject", "to", "group_id", "group_sequence", "reply_to_group_id"),
        "absolute_expiry_time",
    )
)
_NATIVE = (FAMILY_1_0, FAMILY_1_0_SECTIONS)


class Decoded(Protocol):
    """A message, decoded as far as it is asked for."""

    message: Message

    @property
    def headers(self) -> Mapping[str, Any]:
        """Its headers by name."""

    @property
    def properties(self) -> Mapping[str, Any]:
        """Its properties of class basic by name."""

    @property
    def exact(self) -> Mapping[str, Any]:
        """Its properties by name, those of a message of 1.0 as it has them."""


class Looker(Protocol):
    """Who looks at messages."""

    def decoded(self, message: Message) -> Decoded:
        """Return the message that is looked at."""


class Condition:
    """A condition, ready to be evaluated.

    Args:
        tree: see the docstring of the module.
        plain: whether decimals are numbers, and times are milliseconds since 1970; otherwise both
            are opaque.
    """

    def __init__(self, tree: Node, plain: bool) -> None:
        self._plain = plain
        self._get = self._compiled(tree)

    def test(self, message: Message, looker: Looker) -> int:
        """Return 1 if the condition is true for a message, 0 if it is false, -1 if unknown."""
        truth = self._get(looker.decoded(message))
        return int(truth) if isinstance(truth, bool) else -1

    def value(self, message: Message, looker: Looker) -> Any:
        """Return what the tree is for a message, if it is no condition but a value."""
        return self._get(looker.decoded(message))

    def _value(self, value: Any) -> Any:
        if isinstance(value, bytes | bytearray):
            return bytes(value).decode("utf-8", "replace")
        if self._plain:
            if isinstance(value, Decimal):
                return float(value)
            if isinstance(value, datetime):
                return (value - _EPOCH) // _MILLISECOND
        if type(value) is not bool and isinstance(value, int) and not -_INT64 <= value < _INT64:
            return float(value)
        return value

    def _compiled(self, node: Node) -> _Get:
        name = node[0]
        if name in ("and", "or"):
            return _combined([self._compiled(each) for each in node[1:]], decisive=name == "or")
        if name in _COMPARED:
            left, right = self._compiled(node[1]), self._compiled(node[2])
            compared = _comparison(name, node[3])
            return lambda subject: compared(left(subject), right(subject))
        if name == "native":
            own, other = self._compiled(node[1]), self._compiled(node[2])
            return lambda subject: (own if subject.message.family in _NATIVE else other)(subject)
        if name in ("in", "between"):
            of, *others = [self._compiled(each) for each in node[2:]]
            return (_listed if name == "in" else _between)(of, others, node[1])
        if name in ("+", "-", "*", "/", "%"):
            left, right = self._compiled(node[1]), self._compiled(node[2])
            return lambda subject: _calculated(name, left(subject), right(subject))
        if name in ("value", "header", "property", "get"):
            return self._leaf(name, node[1])
        return self._single(name, self._compiled(node[1]), node)

    def _leaf(self, name: str, of: Any) -> _Get:
        value = self._value
        if name == "value":
            constant = value(of)
            return lambda _: constant
        if name == "header":
            return lambda subject: value(subject.headers.get(of))
        if name == "property":
            if self._plain or of in _ONLY_1_0:
                return lambda subject: value(subject.exact.get(of))
            return lambda subject: value(subject.properties.get(of))
        return lambda subject: value(of(subject))

    def _single(self, name: str, get: _Get, node: Node) -> _Get:
        if name == "null":
            return lambda subject: get(subject) is None
        if name == "not":
            return lambda subject: _opposite(get(subject))
        if name == "neg":
            return lambda subject: _calculated("-", 0, get(subject))
        if name == "else":
            other = self._compiled(node[2])
            return lambda subject: other(subject) if (value := get(subject)) is None else value
        match = node[2]
        return lambda subject: match(text) if isinstance(text := get(subject), str) else None


def _combined(gets: list[_Get], decisive: bool) -> _Get:
    def combined(subject: Any) -> bool | None:
        unknown = False
        for get in gets:
            truth = get(subject)
            if truth is decisive:
                return bool(decisive)
            unknown = unknown or truth is not (not decisive)
        return None if unknown else not decisive

    return combined


def _comparison(name: str, mixed: _Compare | None) -> _Compare:
    compare, orders = _COMPARED[name], name not in ("=", "<>")

    def compared(a: Any, b: Any) -> bool | None:
        if a is None or b is None:
            return None
        kind = _kind(a)
        if kind is not None and kind is _kind(b):
            if kind is float and type(a) is not type(b):
                a, b = float(a), float(b)
            if kind is not bool or not orders:
                return bool(compare(a, b))
        return False if mixed is None else mixed(a, b)

    return compared


def _listed(of: _Get, others: list[_Get], mixed: _Compare | None) -> _Get:
    """Compare a value, which is got once, with the others; True if it is equal to one."""
    compared = _comparison("=", mixed)

    def listed(subject: Any) -> bool | None:
        value = of(subject)
        unknown = value is None
        for other in () if unknown else others:
            truth = compared(value, other(subject))
            if truth is True:
                return True
            unknown = unknown or truth is None
        return None if unknown else False

    return listed


def _between(of: _Get, limits: list[_Get], mixed: tuple[_Compare, _Compare] | None) -> _Get:
    low, high = limits
    above = _comparison(">=", None if mixed is None else mixed[0])
    below = _comparison("<=", None if mixed is None else mixed[1])

    def between(subject: Any) -> bool | None:
        value = of(subject)
        truth = above(value, low(subject))
        if truth is False:
            return False
        other = below(value, high(subject))
        return truth if other is True else other

    return between


def _kind(value: Any) -> type | None:
    """Return bool, str, or float for every number; None for an opaque value."""
    if isinstance(value, bool):
        return bool
    if isinstance(value, int | float):
        return float
    return str if isinstance(value, str) else None


def _opposite(truth: Any) -> bool | None:
    return not truth if isinstance(truth, bool) else None


def _calculated(name: str, a: Any, b: Any) -> int | float | None:
    """Return a sum and so on; None if a value is no number, or a division by zero."""
    if _kind(a) is not float or _kind(b) is not float:
        return None
    if name == "%":
        # The sign is that of the dividend, as in Java and C.
        if type(a) is not int or type(b) is not int or not b:
            return None
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    if name == "/":
        return float(a) / float(b) if b else None
    if type(a) is not type(b):
        a, b = float(a), float(b)
    result: int | float
    if name == "+":
        result = a + b
    elif name == "-":
        result = a - b
    else:
        result = a * b
    if isinstance(result, int) and not -_INT64 <= result < _INT64:
        # Beyond 64 bits as a double, as the operands are taken.
        a, b = float(a), float(b)
        result = a + b if name == "+" else a - b if name == "-" else a * b
    return result
