"""Convert values from one type to another, where DuckDB can do it as Spark does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.pipeline.sql.embedded.kinds import (
    BOOL,
    BYTES,
    DATE,
    DECIMAL,
    DOUBLE,
    DUCK,
    INT,
    LONG,
    NULL,
    TEXT,
    TIME,
    Kind,
    NeedsSpark,
)
from harebell.pipeline.sql.embedded.typed import Typed

if TYPE_CHECKING:
    from sqlglot import exp

_PARSED = {
    INT: "hb_int",
    LONG: "hb_long",
    DOUBLE: "hb_double",
    BOOL: "hb_bool",
    TIME: "hb_time",
    DATE: "hb_date",
}
"""Macros that convert a text."""


def alike(one: Kind, other: Kind) -> bool:
    """Whether values of two types are compared as they are."""
    return one.simple and (one == other or NULL in (one, other) or (one.whole and other.whole))


def as_kind(value: Typed, kind: Kind) -> str:
    """Return a value as the type that it has together with others."""
    if value.kind == kind or kind == NULL:
        return value.sql
    if value.kind == NULL:
        return f"CAST(NULL AS {DUCK[kind]})" if kind in DUCK else value.sql
    return f"CAST({value.sql} AS {DUCK[kind]})"


def aligned(left: Typed, right: Typed) -> tuple[str, str]:
    """Return two values as what Spark compares.

    Raises:
        NeedsSpark: Spark compares them in a way of its own.
    """
    a, b = left.kind, right.kind
    if not (a.simple and b.simple):
        raise NeedsSpark(f"a comparison of {a.name} and {b.name}")
    if a == b or NULL in (a, b) or (a.number and b.number):
        return left.sql, right.sql
    if TEXT in (a, b):
        other = b if a == TEXT else a
        kind = LONG if other.whole else DOUBLE if other.number else other
        if kind in _PARSED:
            return converted(left, kind, "="), converted(right, kind, "=")
    if {a, b} == {TIME, DATE}:
        return converted(left, TIME, "="), converted(right, TIME, "=")
    raise NeedsSpark(f"a comparison of {a.name} and {b.name}")


def calculable(left: Typed, right: Typed, key: str) -> tuple[Typed, Typed]:
    """Return two values as numbers, for an operator of arithmetic.

    Raises:
        NeedsSpark: they are none, or Spark calculates with them in a way of its own.
    """
    made = []
    for one, other in ((left, right), (right, left)):
        value = one
        if one.kind == TEXT and other.kind.number:
            kind = LONG if other.kind.whole else DOUBLE
            value = Typed(converted(one, kind, key), kind, one.label)
        if not value.kind.number:
            raise NeedsSpark(f"arithmetic of {left.kind.name} and {right.kind.name}")
        made.append(value)
    kinds = [each.kind for each in made]
    if key == "div" and DECIMAL in (kinds[0].name, kinds[1].name) and DOUBLE not in kinds:
        raise NeedsSpark("arithmetic of decimals")
    return made[0], made[1]


def converted(value: Typed, kind: Kind, where: str, *, cast: bool = False) -> str:
    """Return a value as another type, converted as Spark does.

    Args:
        value: an expression, with the type that it has.
        kind: the type.
        where: the place, for errors.
        cast: whether a conversion is asked for by CAST.

    Raises:
        NeedsSpark: Spark converts it in a way of its own.
    """
    a, sql = value.kind, value.sql
    if a == kind:
        return sql
    duck = f"DECIMAL({kind.scale[0]}, {kind.scale[1]})" if kind.name == DECIMAL else DUCK[kind]
    if a == NULL:
        return f"CAST(NULL AS {duck})"
    if a == TEXT and kind in _PARSED:
        return f"{_PARSED[kind]}({sql})"
    plain = {(INT, LONG), (INT, DOUBLE), (LONG, DOUBLE), (DATE, TIME), (INT, TEXT), (LONG, TEXT)}
    plain |= {(DATE, TEXT), (BOOL, TEXT)}
    if (a, kind) in plain:
        return f"CAST({sql} AS {duck})"
    if a.name == DECIMAL and kind == DOUBLE:
        return f"CAST({sql} AS DOUBLE)"
    if a == TIME and kind == TEXT:
        return f"hb_shown({sql})"
    if cast:
        if a == BYTES and kind == TEXT:
            return f"hb_text({sql})"
        if a == TEXT and kind == BYTES:
            return f"encode({sql})"
        if (a, kind) in {(LONG, INT), (TIME, DATE)}:
            return f"CAST({sql} AS {duck})"
        if a == DOUBLE and kind.whole:
            return f"CAST(trunc({sql}) AS {duck})"
        if a == TIME and kind == LONG:
            return f"hb_seconds({sql})"
        if a == BOOL and kind.whole:
            return f"CAST({sql} AS {duck})"
        if a.whole and kind.name == DECIMAL:
            return f"CAST({sql} AS {duck})"
        if a == TEXT and kind.name == DECIMAL:
            return f"CAST(hb_digits({sql}) AS {duck})"
    raise NeedsSpark(f"{a.name} as {kind.name} in {where}")


def named_kind(to: exp.DataType) -> Kind:
    """Return the type that a CAST names.

    Raises:
        NeedsSpark: only Spark has it.
    """
    from sqlglot import exp

    types = exp.DataType.Type
    known = {
        types.INT: INT,
        types.BIGINT: LONG,
        types.DOUBLE: DOUBLE,
        types.TEXT: TEXT,
        types.BINARY: BYTES,
        types.BOOLEAN: BOOL,
        types.TIMESTAMPTZ: TIME,
        types.DATE: DATE,
        types.VARBINARY: BYTES,
    }
    kind = known.get(to.this)
    if to.this == types.DECIMAL and len(to.expressions) == 2:
        digits = [int(each.name) for each in to.expressions]
        kind = Kind(DECIMAL, scale=(digits[0], digits[1]))
    if kind is None or (to.expressions and kind.name != DECIMAL):
        raise NeedsSpark(f"the type {to.sql('databricks')}")
    return kind


def whole_of(node: exp.Expr, where: str) -> int:
    """Return a whole number that is written as such.

    Raises:
        NeedsSpark: it is something else.
    """
    if node.key != "literal" or node.args.get("is_string") or not str(node.this).isdigit():
        raise NeedsSpark(f"{where} with a number that is no literal")
    return int(str(node.this))
