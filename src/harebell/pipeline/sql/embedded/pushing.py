"""What a query reads of a queue: columns, positions, and conditions that the broker applies.

DuckDB applies every condition again: the broker may send more messages than fit, but none fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harebell.spark.reading.positions import broker_conditions
from harebell.wire.arrow.columns import COLUMNS, FIELDS, PROPERTIES

if TYPE_CHECKING:
    from sqlglot import exp

Condition = tuple[tuple[str, ...], str, tuple[Any, ...]]
"""The path of a column, a symbol, and values: `=`, `<`, `IN` and so on."""
_SYMBOLS = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_TURNED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_OFFSET = ("offset",)


@dataclass
class Wanted:
    """What is read of a queue.

    Attributes:
        columns: names, and paths of fields of `properties`.
        conditions: all of them hold for every row that is needed.
        uses: places of the query that read it.
    """

    columns: set[str] = field(default_factory=set)
    conditions: list[Condition] = field(default_factory=list)
    uses: int = 0

    def names(self) -> tuple[str, ...]:
        """Return the columns as the broker names them."""
        names = []
        for column in COLUMNS:
            if column != PROPERTIES:
                names += [column] if column in self.columns else []
            elif PROPERTIES in self.columns:
                names.append(PROPERTIES)
            else:
                paths = (f"{PROPERTIES}.{each}" for each in FIELDS)
                names += [path for path in paths if path in self.columns]
        return tuple(names) or _OFFSET

    def where(self) -> str | None:
        """Return the condition for the broker."""
        return broker_conditions.joined(
            None,
            (
                text
                for path, symbol, values in self.conditions
                if (text := broker_conditions.compared(path, symbol, values)) is not None
            ),
        )

    def span(self, first: int, end: int) -> tuple[int, int]:
        """Return the part of a range of positions that is needed."""
        for path, symbol, values in self.conditions:
            if path == _OFFSET and all(type(value) is int for value in values):
                low, high = min(values), max(values)
                if symbol in ("=", "IN", ">="):
                    first = max(first, low)
                if symbol == ">":
                    first = max(first, low + 1)
                if symbol in ("=", "IN", "<="):
                    end = min(end, high + 1)
                if symbol == "<":
                    end = min(end, low)
        return first, max(first, end)


def conjuncts(where: exp.Expr) -> Iterator[tuple[list[str], str, tuple[Any, ...]]]:
    """Yield the comparisons of columns with literals that a condition is made of with AND."""
    from sqlglot import exp

    for node in where.flatten() if isinstance(where, exp.And) else (where,):
        if isinstance(node, exp.Paren | exp.And):
            yield from conjuncts(node.this if isinstance(node, exp.Paren) else node)
        elif node.key in _SYMBOLS:
            symbol, left, right = _SYMBOLS[node.key], node.this, node.expression
            if not isinstance(left, exp.Column | exp.Dot):
                left, right, symbol = right, left, _TURNED[symbol]
            yield from _compared(left, symbol, [right])
        elif isinstance(node, exp.Between):
            yield from _compared(node.this, ">=", [node.args["low"]])
            yield from _compared(node.this, "<=", [node.args["high"]])
        elif isinstance(node, exp.In) and node.args.get("query") is None:
            yield from _compared(node.this, "IN", node.expressions)
        elif isinstance(node, exp.Column):
            yield from _compared(node, "=", [exp.true()])
        elif isinstance(node, exp.Not) and isinstance(node.this, exp.Column):
            yield from _compared(node.this, "=", [exp.false()])


def _compared(
    column: exp.Expr, symbol: str, nodes: list[exp.Expr]
) -> Iterator[tuple[list[str], str, tuple[Any, ...]]]:
    from sqlglot import exp

    values = [_value(each) for each in nodes]
    path: list[str] = []
    while isinstance(column, exp.Dot):
        path.insert(0, column.expression.name)
        column = column.this
    if isinstance(column, exp.Column) and values and None not in values:
        yield [each.name for each in column.parts] + path, symbol, tuple(values)


def _value(node: exp.Expr) -> Any:
    from sqlglot import exp

    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        if node.is_string:
            return str(node.this)
        return int(str(node.this)) if str(node.this).isdigit() else None
    return None
