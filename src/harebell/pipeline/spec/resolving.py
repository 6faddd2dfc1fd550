"""Resolve the names in the SQL of a pipeline: columns, fields and functions, without Spark.

Spark resolves names when a pipeline starts, in Java. This finds the same mistakes with their lines
before that, and all of them. It says nothing where it does not know enough: about the columns of a
Python step, for example, or of a table with a path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from harebell.base.names import did_you_mean, nearest
from harebell.pipeline.spec.relations import (
    OPEN,
    Relation,
    fields_of,
    relation_of,
    shown,
    type_named,
)
from harebell.pipeline.spec.spark_functions import functions_of_pyspark, is_function

if TYPE_CHECKING:
    from sqlglot import exp

    from harebell.pipeline.spec.relations import Type

_WITHOUT_PARENTHESES = frozenset(
    {"user", "current_user", "session_user", "current_date", "current_time", "current_timestamp"}
    | {"current_catalog", "current_database", "current_schema", "localtime", "localtimestamp"}
    | {"grouping__id", "spark_grouping_id", "_metadata", "current_path", "now"}
)
"""Names that Spark finds although no table has them as columns."""
_WINDOWS = ("window", "session_window")
_GENERATORS = frozenset(
    {"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"}
    | {"stack", "json_tuple", "variant_explode", "variant_explode_outer"}
)


@dataclass(frozen=True)
class Mistake:
    """A name that does not exist, or a value of the wrong type.

    Args:
        line: its line in the SQL, counted from 1.
        text: the mistake, and how to correct it.
    """

    line: int
    text: str


@dataclass
class _Scope:
    """What the names of a SELECT can mean.

    Args:
        outer: the scope around it.
        sources: tables, views and subqueries, by alias in small letters.
        hidden: aliases that `*` leaves out: the right sides of semi and anti joins.
        shared: columns that a join has made one of two.
        aliases: names of its own columns, in small letters.
    """

    outer: _Scope | None = None
    sources: dict[str, Relation] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)

    def add(self, alias: str, relation: Relation) -> str:
        name = alias.lower() or f"#{len(self.sources)}"
        self.sources[name] = relation
        return name


class Resolver:
    """Resolve the names of one statement.

    Args:
        views: the columns of all views, by name in small letters.

    Attributes:
        mistakes: what was found, in the order of the text.
    """

    def __init__(self, views: Mapping[str, Relation]) -> None:
        self._views = views
        self.mistakes: list[Mistake] = []

    def columns_of(self, query: exp.Expr) -> Relation:
        """Return the columns that a query makes."""
        return self._query(query, self._views, None)

    def expression(self, tree: exp.Expr, relation: Relation) -> Type:
        """Return the type of an expression over the columns of a view."""
        return self._type(tree, _Scope(None, {"": relation}))

    def condition(self, tree: exp.Expr, relation: Relation) -> None:
        """Check a condition over the columns of a view."""
        self._condition(tree, _Scope(None, {"": relation}))

    # --- queries --------------------------------------------------------------------------------

    def _query(
        self, node: exp.Expr, views: Mapping[str, Relation], outer: _Scope | None
    ) -> Relation:
        from sqlglot import exp

        if isinstance(node, exp.Subquery):
            views = self._with(node, views, outer)
            return OPEN if node.args.get("pivots") else self._query(node.this, views, outer)
        if isinstance(node, exp.SetOperation):
            views = self._with(node, views, outer)
            left = self._query(node.this, views, outer)
            right = self._query(node.expression, views, outer)
            return _united(left, right, by_name=bool(node.args.get("by_name")))
        if isinstance(node, exp.Select):
            return self._select(node, self._with(node, views, outer), outer)
        return OPEN

    def _with(
        self, node: exp.Expr, views: Mapping[str, Relation], outer: _Scope | None
    ) -> Mapping[str, Relation]:
        """Return the views together with those that a WITH in front of a query makes."""
        all_views = dict(views)
        clause = node.args.get("with_")
        if clause is None:
            return all_views
        for each in clause.expressions:
            # Its query reads its own columns, which are not known yet.
            if clause.args.get("recursive"):
                all_views[each.alias.lower()] = OPEN
                continue
            made = self._query(each.this, all_views, outer)
            all_views[each.alias.lower()] = _aliased(made, each.args.get("alias"))
        return all_views

    def _select(
        self, node: exp.Select, views: Mapping[str, Relation], outer: _Scope | None
    ) -> Relation:
        from sqlglot import exp

        scope = _Scope(outer)
        if node.args.get("from_") is not None:
            self._source(node.args["from_"].this, scope, views)
        self._joined(node, scope, views)
        where = node.args.get("where")
        if where is not None:
            self._condition(where.this, scope, views)
        # After the WHERE, which Spark resolves before it names the columns.
        scope.aliases = set(_own_names(node))
        made = self._projected(node.expressions, scope, views)
        if node.args.get("kind") or any(node.find_all(exp.QueryTransform)):
            made = OPEN
        for name in ("having", "qualify"):
            if node.args.get(name) is not None:
                self._condition(node.args[name].this, scope, views)
        for name in ("group", "order", "sort", "distribute", "cluster", "windows"):
            table = node.args.get(name)
            for each in table if isinstance(table, list) else [table]:
                if each is not None:
                    self._type(each, scope, views)
        return OPEN if node.args.get("pivots") else made

    def _joined(self, node: exp.Expr, scope: _Scope, views: Mapping[str, Relation]) -> None:
        for lateral in node.args.get("laterals") or ():
            self._source(lateral, scope, views)
        for join in node.args.get("joins") or ():
            before = dict(scope.sources)
            name = self._source(join.this, scope, views)
            if join.args.get("on") is not None:
                self._condition(join.args["on"], scope, views)
            for column in join.args.get("using") or ():
                scope.shared.add(column.name.lower())
                for side in ({name: scope.sources[name]}, before):
                    self._lookup([column], _Scope(None, side))
            if join.method == "NATURAL":
                scope.shared |= {each.lower() for each in scope.sources[name].names}
            # Such a join only asks whether there is a row; `*` has none of its columns.
            if {join.kind, join.side} & {"SEMI", "ANTI"}:
                scope.hidden.add(name)

    def _source(self, node: exp.Expr, scope: _Scope, views: Mapping[str, Relation]) -> str:
        """Add what a FROM or JOIN names; return its alias."""
        from sqlglot import exp

        alias = node.args.get("alias")
        if isinstance(node, exp.Table):
            # A name with a database or a path is a table of Spark's catalog, not a view.
            is_view = isinstance(node.this, exp.Identifier) and not node.args.get("db")
            relation = views.get(node.name.lower(), OPEN) if is_view else OPEN
        elif isinstance(node, exp.Subquery):
            if isinstance(node.this, exp.Table):
                return self._source(node.this, scope, views)
            relation = self._query(node.this, self._with(node, views, scope.outer), scope.outer)
        elif isinstance(node, exp.Lateral):
            relation = self._lateral(node, scope, views)
        elif isinstance(node, exp.Stream):
            return self._source(node.this, scope, views)
        else:
            relation = OPEN
            if alias is not None and alias.columns:
                relation = Relation(tuple((each.name, None) for each in alias.columns))
        if node.args.get("pivots"):
            relation = OPEN
        name = scope.add(node.alias_or_name, _aliased(relation, alias))
        self._joined(node, scope, views)
        return name

    def _lateral(self, node: exp.Lateral, scope: _Scope, views: Mapping[str, Relation]) -> Relation:
        from sqlglot import exp

        if isinstance(node.this, exp.Subquery):
            return self._query(node.this, views, scope)
        kind = self._type(node.this, scope, views)
        alias = node.args.get("alias")
        columns = alias.columns if alias is not None else []
        if not columns:
            return OPEN
        if len(columns) == 1:
            return Relation(((columns[0].name, kind),))
        return Relation(tuple((each.name, None) for each in columns))

    # --- the columns of a SELECT ----------------------------------------------------------------

    def _projected(
        self, nodes: Iterable[exp.Expr], scope: _Scope, views: Mapping[str, Relation]
    ) -> Relation:
        columns: list[tuple[str, Type]] = []
        is_open = generated = False
        for node in nodes:
            part = self._part(node, scope, views)
            columns += part.columns
            is_open |= part.is_open
            generated |= part.generated
        return Relation(tuple(columns), is_open, generated)

    def _part(self, node: exp.Expr, scope: _Scope, views: Mapping[str, Relation]) -> Relation:
        from sqlglot import exp

        if isinstance(node, exp.Star):
            return self._without(node, _starred(scope))
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return self._without(node.this, self._struct_or_table(node, scope))
        if isinstance(node, exp.Aliases):
            self._type(node.this, scope, views)
            return Relation(tuple((each.name, None) for each in node.expressions))
        kind = self._type(node, scope, views)
        if isinstance(node, exp.Alias):
            return Relation(((node.alias, kind),))
        name = _name_of(node)
        if name is not None:
            called = name.lower() in _WITHOUT_PARENTHESES
            return Relation(((name, kind),), generated=called)
        if isinstance(node, exp.Literal | exp.Boolean | exp.Null) or _called(node) in _GENERATORS:
            return OPEN
        known = isinstance(node, exp.Func | exp.Condition | exp.Window)
        extracts = isinstance(node, exp.JSONExtract | exp.Dot)
        return OPEN if extracts or not known else Relation(generated=True)

    def _struct_or_table(self, node: exp.Column, scope: _Scope) -> Relation:
        """Return the columns of `table.*`, or the fields of `struct.*`."""
        from sqlglot import exp

        parts = [each for each in node.parts if isinstance(each, exp.Identifier)]
        if len(parts) == 1 and parts[0].name.lower() in scope.sources:
            return scope.sources[parts[0].name.lower()]
        kind = self._lookup(parts, scope)
        if kind is None:
            return OPEN
        if not kind.is_type(exp.DataType.Type.STRUCT):
            name = ".".join(each.name for each in parts)
            self._add(node, f"{name} is {shown(kind)}, and {name}.* needs a struct")
            return OPEN
        return Relation(tuple(fields_of(kind)))

    def _without(self, star: exp.Star, relation: Relation) -> Relation:
        """Return the columns of a star without those that it excludes."""
        if star.args.get("replace") or star.args.get("rename"):
            return OPEN
        excluded = star.args.get("except_") or ()
        for each in excluded:
            if not relation.may_have(each.name):
                known = did_you_mean(each.name, relation.names)
                self._add(each, f"there is no column {each.name!r} to leave out: {known}")
        out = {each.name.lower() for each in excluded}
        kept = tuple(each for each in relation.columns if each[0].lower() not in out)
        return Relation(kept, relation.is_open, relation.generated)

    # --- expressions ----------------------------------------------------------------------------

    def _condition(
        self, node: exp.Expr, scope: _Scope, views: Mapping[str, Relation] | None = None
    ) -> None:
        from sqlglot import exp

        kind = self._type(node, scope, views)
        # Spark converts texts, where they are parts of a condition.
        conditions = (exp.DataType.Type.BOOLEAN, *exp.DataType.TEXT_TYPES)
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.Neg):
            self._add(node, f"{node.sql('spark')} is a number, and no condition: compare it")
        elif kind is not None and not kind.is_type(*conditions):
            self._add(node, f"{node.sql('spark')} is {shown(kind)}, and no condition: compare it")

    def _type(
        self, node: exp.Expr, scope: _Scope, views: Mapping[str, Relation] | None = None
    ) -> Type:
        """Resolve the names of an expression; return its type, None if it is not known."""
        from sqlglot import exp

        views = self._views if views is None else views
        if isinstance(node, exp.Query):
            self._query(node, views, scope)
            return None
        if isinstance(node, exp.Column | exp.Dot):
            return self._path(node, scope, views)
        if isinstance(node, exp.DataType | exp.Identifier | exp.TableAlias | exp.Star):
            return None
        if isinstance(node, exp.Kwarg | exp.PropertyEQ):
            return self._type(node.expression, scope, views)
        if isinstance(node, exp.And | exp.Or | exp.Not):
            for each in node.iter_expressions():
                self._condition(each, scope, views)
            return type_named("BOOLEAN")
        kinds = [self._type(each, scope, views) for each in node.iter_expressions()]
        return self._made(node, kinds)

    def _made(self, node: exp.Expr, kinds: list[Type]) -> Type:
        """Return the type of an expression for the types of its parts."""
        from sqlglot import exp

        first = kinds[0] if kinds else None
        if isinstance(node, exp.Cast | exp.TryCast):
            return cast("Type", node.to)
        if isinstance(node, exp.Alias | exp.Paren):
            return first
        if isinstance(node, exp.Bracket):
            return _inner(first)
        if isinstance(node, exp.Literal):
            return type_named("STRING") if node.is_string else None
        if isinstance(node, exp.FromJson):
            schema = node.args.get("expression")
            is_text = isinstance(schema, exp.Literal) and schema.is_string
            return _parsed(str(schema.this)) if is_text and schema is not None else None
        if _called(node) in ("explode", "explode_outer"):
            return self._exploded(node, first)
        if isinstance(node, exp.Binary) and isinstance(node, exp.Predicate):
            self._compared(node, kinds)
        if isinstance(node, exp.Predicate | exp.Boolean):
            return type_named("BOOLEAN")
        return None

    def _exploded(self, node: exp.Expr, kind: Type) -> Type:
        from sqlglot import exp

        if kind is None:
            return None
        if not kind.is_type(exp.DataType.Type.ARRAY, exp.DataType.Type.MAP):
            self._add(node, f"{_called(node)} needs an array or a map, not {shown(kind)}")
        return _inner(kind) if kind.is_type(exp.DataType.Type.ARRAY) else None

    def _compared(self, node: exp.Expr, kinds: list[Type]) -> None:
        """Check that a struct, array or map is not compared with a simple value."""
        from sqlglot import exp

        nested = (exp.DataType.Type.STRUCT, exp.DataType.Type.ARRAY, exp.DataType.Type.MAP)
        sides = (node.this, node.expression)
        if len(kinds) != len(sides):
            return
        for (side, kind), (other, simple) in ((a, b) for a, b in _both(sides, kinds)):
            plain = isinstance(other, exp.Literal) or (
                simple is not None and not simple.is_type(*nested)
            )
            if kind is not None and kind.is_type(*nested) and plain:
                self._add(
                    side,
                    f"{side.sql('spark')} is {shown(kind)}, and cannot be compared with "
                    f"{other.sql('spark')}",
                )

    def _path(self, node: exp.Expr, scope: _Scope, views: Mapping[str, Relation]) -> Type:
        """Resolve a column, or fields of a column or of another value."""
        from sqlglot import exp

        names: list[exp.Expr] = []
        while isinstance(node, exp.Dot):
            names.insert(0, node.expression)
            node = node.this
        if not all(isinstance(each, exp.Identifier) for each in names):
            for each in (node, *names):
                self._type(each, scope, views)
            return None
        if not isinstance(node, exp.Column):
            kind = self._type(node, scope, views)
            return self._fields(node.sql("spark"), kind, names)
        parts = [each for each in node.parts if isinstance(each, exp.Identifier)]
        if isinstance(node.this, exp.Star):
            self._struct_or_table(node, scope)
            return None
        return self._lookup([*parts, *names], scope)

    def _lookup(self, parts: Sequence[exp.Expr], scope: _Scope) -> Type:
        """Return the type of a path of names: a column, behind its table or before its fields."""
        first = parts[0].name.lower()
        around: _Scope | None = scope
        while around is not None:
            table = around.sources.get(first)
            # A name before a dot is a table first, and else a column with fields, as in Spark.
            if table is not None and len(parts) > 1 and table.may_have(parts[1].name):
                kind = table.type_of(parts[1].name)
                return self._fields(parts[1].name, kind, parts[2:])
            for relation in around.sources.values():
                if first in (each.lower() for each in relation.names):
                    return self._fields(parts[0].name, relation.type_of(first), parts[1:])
            if first in around.aliases or any(
                each.may_have(parts[0].name) for each in around.sources.values()
            ):
                return None
            if table is not None and len(parts) > 1:
                said = did_you_mean(parts[1].name, table.names)
                self._add(parts[1], f"{parts[0].name} has no column {parts[1].name!r}: {said}")
                return None
            # A subquery may use the columns of the query around it.
            around = around.outer
        if first not in _WITHOUT_PARENTHESES:
            known = _suggestion(parts[0].name, scope)
            self._add(parts[0], f"there is no column {parts[0].name!r}: {known}")
        return None

    def _fields(self, name: str, kind: Type, fields: Sequence[exp.Expr]) -> Type:
        """Return the type of a field within fields of a value."""
        from sqlglot import exp

        types = exp.DataType.Type
        for each in fields:
            inner = kind
            if inner is not None and inner.is_type(types.ARRAY):
                inner = _inner(inner)
            if inner is None or inner.is_type(types.MAP, types.VARIANT):
                return None
            if not inner.is_type(types.STRUCT):
                self._add(each, f"{name} is {shown(inner)}, and has no field {each.name!r}")
                return None
            types_by_name = {key.lower(): value for key, value in fields_of(inner)}
            if each.name.lower() not in types_by_name:
                known = did_you_mean(each.name, (key for key, _ in fields_of(inner)))
                self._add(each, f"{name} has no field {each.name!r}: {known}")
                return None
            kind, name = types_by_name[each.name.lower()], f"{name}.{each.name}"
        return kind

    def _add(self, node: exp.Expr, text: str) -> None:
        mistake = Mistake(_line_of(node), text)
        if mistake not in self.mistakes:
            self.mistakes.append(mistake)


def _both(
    sides: tuple[exp.Expr, exp.Expr], kinds: list[Type]
) -> Iterator[tuple[tuple[exp.Expr, Type], tuple[exp.Expr, Type]]]:
    pairs = list(zip(sides, kinds, strict=True))
    yield pairs[0], pairs[1]
    yield pairs[1], pairs[0]


def _aliased(relation: Relation, alias: exp.Expr | None) -> Relation:
    columns = alias.args.get("columns") if alias is not None else None
    return relation.renamed(each.name for each in columns) if columns else relation


def _united(left: Relation, right: Relation, *, by_name: bool) -> Relation:
    """Return the columns of a UNION: the names of the left side."""
    if by_name or left.is_open or len(left.columns) != len(right.columns):
        return Relation(left.columns, is_open=True)
    pairs = zip(left.columns, right.columns, strict=True)
    return Relation(
        tuple((name, kind if kind == other else None) for (name, kind), (_, other) in pairs),
        generated=left.generated,
    )


def _starred(scope: _Scope) -> Relation:
    """Return the columns of `*`."""
    columns: list[tuple[str, Type]] = []
    shared: set[str] = set()
    is_open = generated = False
    for alias, relation in scope.sources.items():
        if alias in scope.hidden:
            continue
        columns += [each for each in relation.columns if each[0].lower() not in shared]
        shared |= scope.shared & {each.lower() for each in relation.names}
        is_open |= relation.is_open
        generated |= relation.generated
    return Relation(tuple(columns), is_open, generated)


def _own_names(node: exp.Select) -> Iterator[str]:
    """Yield the names that a SELECT gives to its columns, and to windows over time."""
    from sqlglot import exp

    for each in node.expressions:
        if isinstance(each, exp.Alias):
            yield each.alias.lower()
        elif isinstance(each, exp.Aliases):
            yield from (name.name.lower() for name in each.expressions)
    group = node.args.get("group")
    for each in group.expressions if group is not None else ():
        if _called(each) in _WINDOWS:
            yield _called(each)
        elif isinstance(each, exp.Literal):
            yield from _WINDOWS


def _name_of(node: exp.Expr) -> str | None:
    """Return the name that Spark gives to a column without an alias; None for any other."""
    from sqlglot import exp

    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Column):
        return str(node.name)
    if isinstance(node, exp.Dot) and all(
        isinstance(each, exp.Column | exp.Identifier) for each in node.flatten()
    ):
        return str(node.expression.name)
    return _called(node) if _called(node) in _WINDOWS else None


def _called(node: exp.Expr) -> str:
    """Return the name of a function that is called; "" for anything else."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def _inner(kind: Type) -> Type:
    """Return the type of an element of an array, or of a value of a map."""
    from sqlglot import exp

    if kind is None or not kind.is_type(exp.DataType.Type.ARRAY, exp.DataType.Type.MAP):
        return None
    expression = kind.expressions[-1] if kind.expressions else None
    return expression if isinstance(expression, exp.DataType) else None


def _parsed(schema: str) -> Type:
    """Return the type that from_json makes of a schema."""
    relation = relation_of(schema)
    return type_named(f"STRUCT<{schema}>") if not relation.is_open else type_named(schema)


def _suggestion(name: str, scope: _Scope) -> str:
    """Return which column was meant, or a field of the same name."""
    from sqlglot import exp

    known: list[str] = []
    around: _Scope | None = scope
    while around is not None:
        for relation in around.sources.values():
            known += relation.names
            for column, kind in relation.columns:
                if kind is not None and kind.is_type(exp.DataType.Type.STRUCT):
                    for each, _ in fields_of(kind):
                        if each.lower() == name.lower():
                            return f"did you mean {column}.{each}?"
        around = around.outer
    return did_you_mean(name, dict.fromkeys(known))


def _line_of(node: exp.Expr) -> int:
    from sqlglot import exp

    for each in (node, *node.find_all(exp.Identifier)):
        if "line" in each.meta:
            return int(each.meta["line"])
    return 1


def unknown_functions(called: Iterable[tuple[str, int]]) -> list[Mistake]:
    """Return a mistake for each function that Spark does not have.

    Args:
        called: names of functions, with their lines.
    """
    unknown_functions = []
    for name, line in called:
        if not is_function(name):
            near = nearest(name.lower(), functions_of_pyspark())
            said = f": did you mean {near}?" if near else " of Spark"
            unknown_functions.append(Mistake(line, f"there is no function {name!r}{said}"))
    return unknown_functions
