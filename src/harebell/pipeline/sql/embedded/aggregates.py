"""Translate aggregates and functions over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harebell.pipeline.sql.embedded.conversions import as_kind, converted
from harebell.pipeline.sql.embedded.expressions import Expressions
from harebell.pipeline.sql.embedded.kinds import (
    BOOL,
    DATE,
    DECIMAL,
    DOUBLE,
    INT,
    LONG,
    NULL,
    TEXT,
    TIME,
    Kind,
    NeedsSpark,
)
from harebell.pipeline.sql.embedded.typed import Typed, called, parts

if TYPE_CHECKING:
    from sqlglot import exp

_NUMBERED = {
    "rownumber": ("row_number", "row_number"),
    "rank": ("rank", "RANK"),
    "denserank": ("dense_rank", "DENSE_RANK"),
}
"""Names in DuckDB, and as Spark writes them."""


class Aggregates(Expressions):
    """Translate expressions of many rows; a subclass knows what rows are ordered by."""

    _only = ""
    """A condition of the rows that the next aggregate takes, from FILTER."""

    def window(self, listed: Sequence[exp.Expr], order: exp.Expr | None) -> tuple[str, str]:
        """Translate what is within the brackets of an OVER; return it as Spark writes it, too."""
        raise NotImplementedError

    def _of_count(self, node: exp.Expr) -> Typed:
        this, others = parts(node, "this", "expressions")
        if others:
            raise NeedsSpark("count() of several values")
        if this.key == "star":
            only, self._only = self._only, ""
            text = f"count(CASE WHEN {only} THEN 1 END)" if only else "count(*)"
            return Typed(text, LONG, "count(1)")
        word, value = self._aggregated(this)
        if not value.kind.simple:
            raise NeedsSpark(f"count() of {value.kind.name}")
        return Typed(f"count({word}{value.sql})", LONG, f"count({word}{value.label})")

    def _of_sum(self, node: exp.Expr) -> Typed:
        word, value = self._aggregated(*parts(node, "this"))
        kind = value.kind
        if kind.whole:
            made, total = f"CAST(sum({word}{value.sql}) AS BIGINT)", LONG
        elif kind == DOUBLE:
            made, total = f"sum({word}{value.sql})", DOUBLE
        elif kind.name == DECIMAL:
            digits, behind = min(kind.scale[0] + 10, 38), kind.scale[1]
            made = f"CAST(sum({word}{value.sql}) AS DECIMAL({digits}, {behind}))"
            total = Kind(DECIMAL, scale=(digits, behind))
        else:
            raise NeedsSpark(f"sum() of {kind.name}")
        return Typed(made, total, f"sum({word}{value.label})")

    def _of_avg(self, node: exp.Expr) -> Typed:
        word, value = self._aggregated(*parts(node, "this"))
        if not value.kind.whole and value.kind != DOUBLE:
            raise NeedsSpark(f"avg() of {value.kind.name}")
        return Typed(f"avg({word}{as_kind(value, DOUBLE)})", DOUBLE, f"avg({word}{value.label})")

    def _of_min(self, node: exp.Expr) -> Typed:
        return self._extreme(node, "min")

    def _of_max(self, node: exp.Expr) -> Typed:
        return self._extreme(node, "max")

    def _extreme(self, node: exp.Expr, name: str) -> Typed:
        _, value = self._aggregated(*parts(node, "this"))
        kind = value.kind
        if not kind.number and kind not in (TEXT, TIME, DATE, BOOL):
            raise NeedsSpark(f"{name}() of {kind.name}")
        return Typed(f"{name}({value.sql})", kind, f"{name}({value.label})")

    def _of_countif(self, node: exp.Expr) -> Typed:
        value = self._tested(*parts(node, "this"))
        test = converted(value, BOOL, "count_if()") if value.kind == NULL else self._true(value)
        counted = f"count(CASE WHEN {test} THEN 1 END)"
        return Typed(counted, LONG, f"count_if({value.label})")

    def _of_filter(self, node: exp.Expr) -> Typed:
        this, where = parts(node, "this", "expression")
        if this.key not in ("count", "min", "max", "avg"):
            raise NeedsSpark(f"FILTER behind {called(this)}")
        when = self._tested(where.this)
        # Not FILTER: DuckDB computes what is aggregated for all rows.
        self._only = self._true(when)
        made = self.expression(this)
        return Typed(made.sql, made.kind, f"{made.label} FILTER (WHERE {when.label})")

    def _aggregated(self, node: exp.Expr) -> tuple[str, Typed]:
        only, self._only = self._only, ""
        word = ""
        if node.key == "distinct":
            (listed,) = parts(node, "expressions")
            if len(listed) != 1:
                raise NeedsSpark("DISTINCT of several values")
            word, node = "DISTINCT ", listed[0]
        value = self.expression(node)
        if only:
            value = Typed(f"CASE WHEN {only} THEN {value.sql} END", value.kind, value.label)
        return word, value

    def _of_window(self, node: exp.Expr) -> Typed:
        this, listed, order = parts(node, "this", "partition_by", "order", flags=("over",))
        if node.args.get("over") not in (None, "OVER"):
            raise NeedsSpark("such a window")
        inside, label = self.window(listed or (), order)
        if this.key in _NUMBERED and order is not None:
            parts(this)
            name, shown = _NUMBERED[this.key]
            frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
            made = Typed(f"CAST({name}() OVER ({inside}) AS INTEGER)", INT, f"{shown}()")
        elif this.key in ("count", "min", "max", "avg") and this.this.key != "distinct":
            frame = (
                "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
                if order is None
                else "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
            )
            inner = self.expression(this)
            made = Typed(f"{inner.sql} OVER ({inside})", inner.kind, inner.label)
        else:
            raise NeedsSpark(f"{called(this)} over a window")
        return Typed(made.sql, made.kind, f"{made.label} OVER ({f'{label} {frame}'.strip()})")
