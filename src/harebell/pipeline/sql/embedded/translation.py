"""Translate a query of Spark SQL to DuckDB, and find out what it reads of its queues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harebell.pipeline.sql.embedded.aggregates import Aggregates
from harebell.pipeline.sql.embedded.kinds import (
    DOUBLE,
    INT_END,
    NULL,
    Kind,
    NeedsSpark,
    common,
)
from harebell.pipeline.sql.embedded.pushing import Wanted, conjuncts
from harebell.pipeline.sql.embedded.scopes import Scope, Source
from harebell.pipeline.sql.embedded.typed import (
    UNKNOWN,
    Typed,
    called,
    column_name,
    named,
    parts,
)

if TYPE_CHECKING:
    from sqlglot import exp

_JOINS = {
    "": "JOIN",
    "INNER": "JOIN",
    "CROSS": "CROSS JOIN",
    "LEFT": "LEFT JOIN",
    "RIGHT": "RIGHT JOIN",
    "FULL": "FULL JOIN",
    "SEMI": "SEMI JOIN",
    "ANTI": "ANTI JOIN",
}
_AGGREGATED = re.compile(r"\b(avg|sum|min|max)\(")
Columns = Iterable[tuple[str, Kind]]
_DEEPEST = 100
"""Queries within queries."""


@dataclass(frozen=True)
class Translated:
    """A query of DuckDB.

    Args:
        sql: its text.
        columns: the names of its columns, as Spark has them.
        wanted: what it reads of each view.
    """

    sql: str
    columns: tuple[str, ...]
    wanted: Mapping[str, Wanted]


class Translation(Aggregates):
    """Translate one query.

    Args:
        views: the columns of the views that it may name.
        queues: those of them whose messages a broker sends.
        written: its text.
    """

    def __init__(self, views: Mapping[str, Columns], queues: Iterable[str], written: str) -> None:
        self.written = written
        self.wanted = {name: Wanted() for name in queues}
        self._views = views
        self._scope = Scope()
        self._tables: list[dict[str, list[tuple[str, Kind]]]] = [{}]
        self._uses: dict[str, int] = {}
        self._depth = 0

    def translated(self, tree: exp.Expr) -> Translated:
        """Translate a query.

        Raises:
            NeedsSpark: it has something that only Spark does.
        """
        for node in tree.walk():
            if node.key == "table" and node.name.lower() not in self._uses:
                self._uses[node.name.lower()] = 0
            if node.key == "table":
                self._uses[node.name.lower()] += 1
        text, columns = self._query(tree)
        return Translated(text, tuple(name for name, _ in columns), self.wanted)

    # --- queries --------------------------------------------------------------------------------

    def _query(self, node: exp.Expr) -> tuple[str, list[tuple[str, Kind]]]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NeedsSpark(f"more than {_DEEPEST} queries within each other")
        self._tables.append({})
        try:
            return self._queried(node)
        finally:
            self._tables.pop()
            self._depth -= 1

    def _queried(self, node: exp.Expr) -> tuple[str, list[tuple[str, Kind]]]:
        from sqlglot import exp

        if isinstance(node, exp.Subquery):
            inner, with_, order, limit, offset = parts(
                node, "this", "with_", "order", "limit", "offset"
            )
            before = self._with(with_)
            text, columns = self._query(inner)
            end = self._end(order, limit, offset, columns)
            return f"{before}({text}){end}" if end else f"{before}{text}", columns
        if isinstance(node, exp.SetOperation):
            return self._united(node)
        if isinstance(node, exp.Select):
            return self._select(node)
        raise NeedsSpark(called(node))

    def _with(self, node: exp.Expr | None) -> str:
        if node is None:
            return ""
        (listed,) = parts(node, "expressions")
        made = []
        for each in listed:
            query, alias = parts(each, "this", "alias")
            text, columns = self._query(query)
            columns = _renamed(columns, alias)
            name = each.alias.lower()
            self._tables[-1][name] = columns
            # Read once, as by Spark: both places see the same messages.
            kept = " MATERIALIZED" if self._uses.get(name, 0) > 1 else ""
            names = ", ".join(named(column) for column, _ in columns)
            made.append(f"{named(name)}({names}) AS{kept} ({text})")
        return f"WITH {', '.join(made)} "

    def _united(self, node: exp.Expr) -> tuple[str, list[tuple[str, Kind]]]:
        left, right, distinct, with_, order, limit, offset = parts(
            node, "this", "expression", "distinct", "with_", "order", "limit", "offset"
        )
        before = self._with(with_)
        one, columns = self._query(left)
        other, others = self._query(right)
        if len(columns) != len(others):
            raise NeedsSpark(f"{node.key.upper()} of different numbers of columns")
        made = []
        for (name, kind), (_, second) in zip(columns, others, strict=True):
            both = common((kind, second), node.key.upper())
            if not both.simple or both == NULL:
                raise NeedsSpark(f"{node.key.upper()} of {both.name}")
            made.append((name, both))
        word = node.key.upper() + ("" if distinct else " ALL")
        end = self._end(order, limit, offset, made)
        text = f"({one}) {word} ({other})"
        if word != "UNION ALL" and any(kind == DOUBLE for _, kind in made):
            inside = [f"c{number}" for number in range(len(made))]
            outside = ", ".join(
                f"{_zero(each) if kind == DOUBLE else each} AS {named(name)}"
                for each, (name, kind) in zip(inside, made, strict=True)
            )
            text = f"{outside} FROM ({text}) AS united({', '.join(inside)})"
            text = f"SELECT {text}"
        return f"{before}{text}{end}", made

    def _end(self, order: Any, limit: Any, offset: Any, columns: list[tuple[str, Kind]]) -> str:
        """Translate what is behind a query in brackets, or behind a UNION."""
        before = self._scope
        self._scope = Scope()
        self._scope.name([(name, Typed(named(name), kind, name)) for name, kind in columns])
        try:
            return self._order(order) + self._limited(limit, offset)
        finally:
            self._scope = before

    def _select(self, node: exp.Select) -> tuple[str, list[tuple[str, Kind]]]:
        projected, with_, from_, joins, where, group, having, order, limit, offset, distinct = (
            parts(
                node,
                *("expressions", "with_", "from_", "joins", "where", "group", "having", "order"),
                *("limit", "offset", "distinct"),
            )
        )
        before = self._with(with_)
        around, self._scope = self._scope, Scope(self._scope)
        scope = self._scope
        try:
            source = "" if from_ is None else f" FROM {self._from(from_.this, joins or ())}"
            selected = ""
            if where is not None:
                self.joined |= frozenset(_joined(where.this))
                selected = f" WHERE {self.condition(where.this)}"
                self._push(where.this)
            before_columns = self.correlated
            columns = list(self._projected(projected))
            if group is not None and self.correlated > before_columns:
                raise NeedsSpark("a query for each row within one that has groups")
            if distinct is not None and not all(each.kind.simple for _, each in columns):
                raise NeedsSpark("DISTINCT of such columns")
            scope.name(columns)
            grouped, keys = self._group(group, columns)
            end = "" if having is None else f" HAVING {self.condition(having.this)}"
            end += self._order(order, distinct) + self._limited(limit, offset)
            text = f"{before}SELECT {self._distinct(distinct)}"
            text += ", ".join(
                f"{self._shown(each, keys, distinct)} AS {named(name)}" for name, each in columns
            )
            return text + source + selected + grouped + end, [
                (name, each.kind) for name, each in columns
            ]
        finally:
            self._scope = around

    def _distinct(self, node: exp.Expr | None) -> str:
        if node is None:
            return ""
        parts(node)
        return "DISTINCT "

    def _shown(self, made: Typed, keys: Sequence[str], distinct: object) -> str:
        """Return a column as Spark shows it where rows are grouped or told apart."""
        if distinct is not None and made.kind == DOUBLE:
            return _zero(made.sql)
        if not keys:
            return made.sql
        longest_first = sorted({*keys}, key=len, reverse=True)
        found = re.compile("|".join(re.escape(each) for each in longest_first))
        return found.sub(lambda each: _zero(each[0]), made.sql)

    def _projected(self, nodes: list[exp.Expr]) -> Iterator[tuple[str, Typed]]:
        from sqlglot import exp

        for node in nodes:
            if isinstance(node, exp.Star):
                parts(node)
                yield from self._starred(None)
            elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
                parts(node, "this", "table")
                parts(node.this)
                yield from self._starred(node.table.lower())
            elif isinstance(node, exp.Alias):
                yield node.alias, self.expression(node.this)
            else:
                made = self.expression(node)
                # Spark calls the conversion of a column by its name, but not that of a field.
                name = column_name(node) or made.label
                inner = column_name(node.this) if node.key == "cast" else ""
                if inner and made.label.startswith(f"CAST({inner} AS "):
                    name = inner
                if UNKNOWN in name:
                    raise NeedsSpark(f"the name of the column {name.replace(UNKNOWN, '')}")
                yield name, made

    def _starred(self, table: str | None) -> Iterator[tuple[str, Typed]]:
        found = False
        for alias, source in self._scope.sources.items():
            if alias in self._scope.hidden or table not in (None, alias):
                continue
            found = True
            for name, kind in source.columns:
                self._want(source, name)
                yield name, Typed(f"{named(alias)}.{named(name)}", kind, name)
        if not found:
            raise NeedsSpark("such a *")

    def _group(
        self, node: exp.Expr | None, columns: list[tuple[str, Typed]]
    ) -> tuple[str, list[str]]:
        """Translate a GROUP BY; return the texts of its keys that may be -0, too."""
        if node is None:
            return "", []
        listed, every = parts(node, "expressions", "all")
        if every:
            if any(each.kind == DOUBLE and not _AGGREGATED.search(each.sql) for _, each in columns):
                raise NeedsSpark("GROUP BY ALL with fractions")
            return " GROUP BY ALL", []
        texts, keys = [], []
        for each in listed:
            if each.key == "literal" and not each.is_string:
                place = int(each.this) if str(each.this).isdigit() else 0
                if not 0 < place <= len(columns):
                    raise NeedsSpark("GROUP BY of such a number")
                made, text = columns[place - 1][1], str(place)
            else:
                made = self.expression(each)
                text = made.sql
                if text == named(each.name) and each.name.lower() in self._scope.aliases:
                    made = self._scope.aliases[each.name.lower()]
            if not made.kind.simple:
                raise NeedsSpark(f"GROUP BY of {made.kind.name}")
            texts.append(text)
            if made.kind == DOUBLE:
                keys.append(made.sql)
        return f" GROUP BY {', '.join(texts)}", keys

    def _order(self, node: exp.Expr | None, distinct: object = None) -> str:
        if node is None:
            return ""
        self._scope.own_first = True
        (listed,) = parts(node, "expressions")
        made = ", ".join(self._ordered(each, distinct)[0] for each in listed)
        self._scope.own_first = False
        return f" ORDER BY {made}"

    def _ordered(self, node: exp.Expr, distinct: object = None) -> tuple[str, str]:
        """Translate what rows are ordered by; return it as Spark writes it, too."""
        this, falling, first = parts(node, "this", "desc", "nulls_first")
        if this.key == "literal" and not this.is_string:
            text = label = str(this.this)
        else:
            before, self._scope.within = self._scope.within, this.key != "column"
            made = self.expression(this)
            self._scope.within = before
            if not made.kind.simple:
                raise NeedsSpark(f"ORDER BY of {made.kind.name}")
            text, label = made.sql, made.label
            own = this.key == "column" and text == named(this.name)
            if distinct is not None and not own:
                raise NeedsSpark("ORDER BY of more than a name behind SELECT DISTINCT")
        way = f"{'DESC' if falling else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"
        return f"{text} {way}", f"{label} {way}"

    def _limited(self, limit: exp.Expr | None, offset: exp.Expr | None) -> str:
        text = ""
        for node, word in ((limit, "LIMIT"), (offset, "OFFSET")):
            if node is not None:
                (count,) = parts(node, "expression")
                if (
                    count.key != "literal"
                    or not str(count.this).isdigit()
                    or int(count.this) >= INT_END
                ):
                    raise NeedsSpark(f"{word} with an expression")
                text += f" {word} {count.this}"
        return text

    def window(self, listed: Sequence[exp.Expr], order: exp.Expr | None) -> tuple[str, str]:
        """Translate what is within the brackets of an OVER; return it as Spark writes it, too."""
        before = self._scope.own_first
        self._scope.own_first = False
        texts, labels = [], []
        if listed:
            made = [self.expression(each) for each in listed]
            texts.append("PARTITION BY " + ", ".join(each.sql for each in made))
            labels.append("PARTITION BY " + ", ".join(each.label for each in made))
        if order is not None:
            (nodes,) = parts(order, "expressions")
            ordered = [self._ordered(each) for each in nodes]
            texts.append("ORDER BY " + ", ".join(text for text, _ in ordered))
            labels.append("ORDER BY " + ", ".join(label for _, label in ordered))
        self._scope.own_first = before
        return " ".join(texts), " ".join(labels)

    # --- tables ---------------------------------------------------------------------------------

    def _from(self, node: exp.Expr, joins: Any) -> str:
        _, text = self._source(node)
        for join in joins:
            table, on, side, kind = parts(join, "this", "on", "side", "kind")
            word = str(kind or side or "").upper()
            if side and kind and str(kind).upper() not in ("OUTER", "SEMI", "ANTI"):
                raise NeedsSpark(f"{side} {kind} JOIN")
            if word == "OUTER":
                word = str(side or "").upper()
            if word not in _JOINS or (
                str(side or "").upper() == "RIGHT" and word in ("SEMI", "ANTI")
            ):
                raise NeedsSpark(f"{word} JOIN")
            alias, other = self._source(table)
            if word in ("SEMI", "ANTI"):
                self._scope.hidden.add(alias)
            if on is None:
                if word not in ("", "CROSS", "INNER"):
                    raise NeedsSpark(f"{word} JOIN without ON")
                text += f" CROSS JOIN {other}"
            else:
                # What ON names may be of a hidden table.
                hidden, self._scope.hidden = self._scope.hidden, set()
                text += f" {_JOINS[word]} {other} ON {self.condition(on)}"
                self._scope.hidden = hidden
        return text

    def _source(self, node: exp.Expr) -> tuple[str, str]:
        """Translate a table; return its alias, and its text with the alias."""
        from sqlglot import exp

        if isinstance(node, exp.Table):
            if node.args.get("db"):
                raise NeedsSpark(f"the table {node.sql('databricks')[:60]}")
            this, alias = parts(node, "this", "alias")
            if not isinstance(this, exp.Identifier):
                raise NeedsSpark(f"the table {node.sql('databricks')[:60]}")
            name = node.name.lower()
            columns = next((each[name] for each in reversed(self._tables) if name in each), None)
            source = Source(columns or [])
            if columns is None and name in self._views:
                source = Source(list(self._views[name]), name if name in self.wanted else "")
                if name in self.wanted:
                    self.wanted[name].uses += 1
            elif columns is None:
                raise NeedsSpark(f"the table {node.sql('databricks')[:60]}")
            text = named(name)
        elif isinstance(node, exp.Subquery):
            alias = node.args.get("alias")
            bare = node.copy()
            bare.set("alias", None)
            around, self._scope = self._scope, Scope()
            try:
                inner, columns = self._query(bare)
            finally:
                self._scope = around
            source = Source(columns)
            text = f"({inner})"
        else:
            raise NeedsSpark(called(node))
        name = (node.alias_or_name or f"query_{len(self._scope.sources) + 1}").lower()
        if name in self._scope.sources:
            raise NeedsSpark(f"two tables {name} in one FROM")
        names = ""
        if alias is not None and alias.args.get("columns"):
            source = Source(_renamed(source.columns, alias), "")
            if isinstance(node, exp.Table):
                raise NeedsSpark("names of columns behind a table")
            names = "(" + ", ".join(named(each) for each, _ in source.columns) + ")"
        lowered = [each.lower() for each, _ in source.columns]
        if len(set(lowered)) != len(lowered):
            raise NeedsSpark("two columns of one name in a query within a query")
        self._scope.sources[name] = source
        return name, f"{text} AS {named(name)}{names}"

    # --- columns --------------------------------------------------------------------------------

    def column(self, node: exp.Expr) -> Typed:
        """Translate a column, or a field of one."""
        from sqlglot import exp

        names: list[str] = []
        while isinstance(node, exp.Dot):
            if not isinstance(node.expression, exp.Identifier):
                raise NeedsSpark(node.sql("databricks")[:60])
            names.insert(0, node.expression.name)
            node = node.this
        if not isinstance(node, exp.Column):
            raise NeedsSpark(node.sql("databricks")[:60])
        path = [each.name for each in node.parts] + names
        scope: Scope | None = self._scope
        while scope is not None:
            found = self._found(path, scope)
            if found is not None:
                self.correlated += scope is not self._scope
                return found
            scope = scope.outer
        raise NeedsSpark(f"the column {'.'.join(path)}")

    def _found(self, path: list[str], scope: Scope) -> Typed | None:
        own = scope.aliases.get(path[0].lower()) if len(path) == 1 else None
        if own is not None and scope.own_first:
            if path[0].lower() in scope.twice:
                raise NeedsSpark(f"the column {path[0]}, of which there are two")
            # DuckDB looks among its own columns only for what is a name and nothing else.
            other = scope.within and scope.place(path) is not None
            return Typed(own.sql if other else named(path[0]), own.kind, path[0])
        place = scope.place(path)
        if place is None:
            return None if own is None else Typed(named(path[0]), own.kind, path[0])
        alias, source, names = place
        kind = source.kind_of(names[0])
        assert kind is not None, "`place` looks for it"
        text = f"{named(alias)}.{named(names[0])}"
        self._want(source, *names[:2])
        for each in names[1:]:
            kind = {name.lower(): inner for name, inner in kind.fields}.get(each.lower())
            if kind is None:
                raise NeedsSpark(f"the column {'.'.join(path)}")
            text = f"({text}).{named(each)}"
        return Typed(text, kind, ".".join(names))

    def _want(self, source: Source, *path: str) -> None:
        if source.view:
            self.wanted[source.view].columns.add(".".join(path).lower())

    def _push(self, where: exp.Expr) -> None:
        """Note the conditions that hold for every row of a queue that is read once."""
        scope = self._scope
        for path, symbol, values in conjuncts(where):
            try:
                place = scope.place(path)
            except NeedsSpark:
                continue
            # Behind an outer join a condition holds for rows that have no message.
            if place is not None and place[1].view and len(scope.sources) == 1:
                view = place[1].view
                if self._uses.get(view) == 1:
                    names = tuple(name.lower() for name in place[2])
                    self.wanted[view].conditions.append((names, symbol, values))

    # --- queries within expressions -------------------------------------------------------------

    def subquery(self, node: exp.Expr) -> tuple[str, list[Kind]]:
        """Translate a query within an expression; return the types of its columns, too."""
        text, columns = self._query(node)
        return f"({text})", [kind for _, kind in columns]


def _joined(where: exp.Expr) -> Iterator[int]:
    """Yield the identities of each IN for which null and false are the same.

    Spark has no null there. It has one where NOT IN alone decides on a row.
    """
    rest = [(where, True)]
    while rest:
        node, alone = rest.pop()
        if node.key in ("and", "or", "paren"):
            sides = (node.this, node.args.get("expression"))
            rest += [(side, alone and node.key != "or") for side in sides if side is not None]
        elif node.key == "in":
            yield id(node)
        elif node.key == "not" and alone:
            yield id(node.this)


def _zero(text: str) -> str:
    return f"hb_zero({text})"


def _renamed(columns: list[tuple[str, Kind]], alias: Any) -> list[tuple[str, Kind]]:
    names = [each.name for each in (alias.args.get("columns") or ())] if alias is not None else []
    if not names:
        return columns
    if len(names) != len(columns):
        raise NeedsSpark("names of other columns than there are")
    return [(name, kind) for name, (_, kind) in zip(names, columns, strict=True)]
