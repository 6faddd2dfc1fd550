"""Translate expressions of Spark SQL to DuckDB, those that give the same values in both.

Every expression has a type, by which conversions that Spark makes are written out. What is not
listed here is left to Spark: a wrong answer is worse than a slow one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from math import isinf
from typing import TYPE_CHECKING, Any

from harebell.pipeline.sql.embedded.conversions import (
    aligned,
    alike,
    as_kind,
    calculable,
    converted,
    named_kind,
    whole_of,
)
from harebell.pipeline.sql.embedded.kinds import (
    BOOL,
    BYTES,
    DATE,
    DECIMAL,
    DOUBLE,
    INT,
    INT_END,
    LONG,
    NULL,
    TEXT,
    TIME,
    Kind,
    NeedsSpark,
    common,
)
from harebell.pipeline.sql.embedded.regex import translated
from harebell.pipeline.sql.embedded.spark_json import java_double
from harebell.pipeline.sql.embedded.typed import UNKNOWN, Typed, called, parts, quoted

if TYPE_CHECKING:
    from sqlglot import exp

_LONG_MAX = 2**63
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_NULL = re.compile(r"(?i)\bIS\s+NULL\b")
_NOT_NULL = re.compile(r"(?i)\bIS\s+NOT\s+NULL\b")
_SUBSTR, _SUBSTRING = (re.compile(rf"(?i)\b{name}\s*\(") for name in ("substr", "substring"))
_UNIT = re.compile(r"(?i)\bdate_trunc\s*\(\s*['\"](\w+)['\"]")
_FAILS = re.compile(
    r"hb_(int|long|double|bool|time|date|digits|div|whole)\(|CAST\(|error\(|//| [-+*%] "
)
"""What may end a query with an error."""
_LONGEST_LOGIC = 100_000
"""Characters: sides are there twice, and logic within logic more often."""
_DEEPEST_LOGIC = 100
_NEAR = 40
_QUOTED_STEP = re.compile(r"\$[^'\"$]*\[\\?['\"]")
_STEP = re.compile(r"[^.\[\]*'\"\s\\$@?]+")
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}
_LONGEST = _LONG_MAX // 1_000_000
_TRUNCATED = (*_SECONDS, "MONTH", "QUARTER", "YEAR")
_DIGITS_MAX = 10


class Expressions:
    """Translate expressions; a subclass knows columns and subqueries."""

    written = ""
    """The text of the query: names of columns are made of it."""
    joined: frozenset[int] = frozenset()
    """The identities of those IN with a query that Spark answers with a join, of a WHERE."""
    correlated = 0
    """How often a query within the query has named a column of the query around it."""

    def column(self, node: exp.Expr) -> Typed:
        """Translate a column, or a field of one."""
        raise NotImplementedError

    def subquery(self, node: exp.Expr) -> tuple[str, list[Kind]]:
        """Translate a query within an expression; return its columns, too."""
        raise NotImplementedError

    def expression(self, node: exp.Expr) -> Typed:
        """Translate an expression.

        Raises:
            NeedsSpark: it has something that is not translated.
        """
        from sqlglot import exp

        if isinstance(node, exp.Column | exp.Dot):
            return self.column(node)
        made = self._translated(node)
        name = self._spelled(node)
        if name in _SPELLED:
            _, bracket, rest = made.label.partition("(")
            return Typed(made.sql, made.kind, f"{_SPELLED[name]}{bracket}{rest}")
        return made

    def _spelled(self, node: exp.Expr) -> str:
        """Return a function's name as it was written, in small letters; "" if it is not known."""
        place = node.meta if node.key != "literal" else {}
        return self.written[place["start"] : place["end"] + 1].lower() if "end" in place else ""

    @cached_property
    def _said(self) -> dict[re.Pattern[str], list[str]]:
        return {}

    def _says(self, pattern: re.Pattern[str]) -> list[str]:
        """Return what a pattern finds in the text of the query, which is searched once."""
        if pattern not in self._said:
            self._said[pattern] = pattern.findall(self.written)
        return self._said[pattern]

    def _translated(self, node: exp.Expr) -> Typed:
        from sqlglot import exp

        method: Callable[[Any], Typed] | None = getattr(self, f"_of_{node.key}", None)
        if method is not None:
            return method(node)
        if node.key in _CALLS:
            return self._call(node, *_CALLS[node.key])
        if node.key in _COMPARISONS:
            return self._comparison(node)
        if node.key in _CHOICES:
            return self._chosen(node)
        if node.key in _ARITHMETIC:
            return self._arithmetic(node)
        if isinstance(node, exp.Anonymous) and str(node.this).lower() in _ANONYMOUS:
            kinds, kind, form = _ANONYMOUS[str(node.this).lower()]
            made = [self.expression(each) for each in node.expressions]
            return self._filled(str(node.this).lower(), made, kinds, kind, form)
        raise NeedsSpark(called(node))

    def condition(self, node: exp.Expr) -> str:
        """Translate a condition."""
        return self._true(self._tested(node))

    def _tested(self, node: exp.Expr) -> Typed:
        """Translate a condition, of which DuckDB computes no more than it needs for a row."""
        if node.key == "paren":
            inner = self._tested(node.this)
            return Typed(f"({inner.sql})", inner.kind, inner.label)
        if node.key in ("and", "or"):
            sides, label = self._sides(node, self._tested)
            return Typed(f"({f' {node.key.upper()} '.join(sides)})", BOOL, label)
        return self.expression(node)

    def _true(self, made: Typed) -> str:
        if made.kind != BOOL:
            raise NeedsSpark(f"{made.kind.name} as a condition")
        return made.sql

    # --- simple values --------------------------------------------------------------------------

    def _of_literal(self, node: exp.Literal) -> Typed:
        text = str(node.this)
        if node.is_string:
            return Typed(quoted(text), TEXT, text)
        if text.isdigit():
            value = int(text)
            if value >= _LONG_MAX:
                raise NeedsSpark(f"the number {text[:40]}")
            return Typed(str(value), INT if value < INT_END else LONG, str(value))
        if "e" in text.lower():
            if isinf(float(text)):
                raise NeedsSpark(f"the number {text[:40]}")
            return Typed(f"CAST({quoted(text)} AS DOUBLE)", DOUBLE, java_double(float(text)))
        before, _, after = text.partition(".")
        if not re.fullmatch(r"\d{0,18}\.\d{1,18}", text):
            raise NeedsSpark(f"the number {text[:40]}")
        digits = len(before.lstrip("0")) + len(after)
        return Typed(text, Kind(DECIMAL, scale=(digits, len(after))), text)

    def _of_boolean(self, node: exp.Boolean) -> Typed:
        return Typed("true" if node.this else "false", BOOL, "true" if node.this else "false")

    def _of_null(self, _node: exp.Null) -> Typed:
        return Typed("NULL", NULL, "NULL")

    def _of_hexstring(self, node: exp.Expr) -> Typed:
        (digits,) = parts(node, "this")
        if not re.fullmatch(r"([0-9a-fA-F]{2})*", str(digits)):
            raise NeedsSpark(f"X'{digits}'")
        return Typed(f"from_hex('{digits}')", BYTES, f"X'{str(digits).upper()}'")

    def _of_paren(self, node: exp.Paren) -> Typed:
        inner = self.expression(node.this)
        return Typed(f"({inner.sql})", inner.kind, inner.label)

    def _of_neg(self, node: exp.Neg) -> Typed:
        if node.this.key == "literal" and str(node.this.this) == str(INT_END):
            return Typed(f"CAST(-{INT_END} AS INTEGER)", INT, f"-{INT_END}")
        inner = self._numeric(self.expression(node.this), called(node))
        label = f"-{inner.label}" if node.this.key == "literal" else f"(- {inner.label})"
        return Typed(f"(- {inner.sql})", inner.kind, label)

    def _of_currenttimestamp(self, node: exp.Expr) -> Typed:
        parts(node)
        return Typed("now()", TIME, "current_timestamp()")

    def _of_currentdate(self, node: exp.Expr) -> Typed:
        parts(node)
        return Typed("CAST(now() AS DATE)", DATE, "current_date()")

    # --- logic ----------------------------------------------------------------------------------

    def _of_and(self, node: exp.And) -> Typed:
        return self._logical(node, "IS FALSE")

    def _of_or(self, node: exp.Or) -> Typed:
        return self._logical(node, "IS TRUE")

    def _logical(self, node: exp.Expr, decided: str) -> Typed:
        """Translate AND or OR, as a value: DuckDB computes all sides, Spark what it needs."""
        sides, label = self._sides(node, self.expression)
        word = f" {node.key.upper()} "
        last = max((place for place, each in enumerate(sides) if _FAILS.search(each)), default=0)
        text = word.join(sides[last:])
        if last > _DEEPEST_LOGIC:
            raise NeedsSpark("so much logic in one value")
        for each in reversed(sides[:last]):
            rest = f"({each}{word}({text}))"
            text = f"CASE WHEN {each} {decided} THEN {node.key == 'or'} ELSE {rest} END"
        if last and len(text) > _LONGEST_LOGIC:
            raise NeedsSpark("so much logic in one value")
        return Typed(f"({text})", BOOL, label)

    def _sides(
        self, node: exp.Expr, translate: Callable[[exp.Expr], Typed]
    ) -> tuple[list[str], str]:
        """Translate what a chain of AND or OR connects; return its label, too."""
        # A long chain is deep in its syntax tree: it is walked, not called into.
        key, sides = node.key, []
        while node.key == key:
            sides.append(translate(node.args["expression"]))
            node = node.this
        sides.append(translate(node))
        sides.reverse()
        label = _balanced([each.label for each in sides], key.upper())
        return [self._logic(each) for each in sides], label

    def _of_not(self, node: exp.Not) -> Typed:
        inner = self.expression(node.this)
        label = f"(NOT {inner.label})"
        # `NOT x IS NULL` and `x IS NOT NULL` are one syntax tree.
        if label.endswith(" IS NULL))") and self._says(_NOT_NULL):
            unclear = UNKNOWN if self._says(_NULL) else ""
            label = f"{inner.label.removesuffix('NULL)')}NOT NULL){unclear}"
        return Typed(f"(NOT {self._logic(inner)})", BOOL, label)

    def _logic(self, made: Typed) -> str:
        return converted(made, BOOL, "logic") if made.kind == NULL else self._true(made)

    def _of_is(self, node: exp.Is) -> Typed:
        this, what = parts(node, "this", "expression")
        inner = self.expression(this)
        if what.key == "null":
            return Typed(f"({inner.sql} IS NULL)", BOOL, f"({inner.label} IS NULL)")
        if what.key == "boolean" and inner.kind == BOOL:
            word = "true" if what.this else "false"
            return Typed(f"({inner.sql} IS {word})", BOOL, f"({inner.label} <=> {word})")
        raise NeedsSpark(called(node))

    def _comparison(self, node: exp.Expr) -> Typed:
        this, other = parts(node, "this", "expression")
        left, right = self.expression(this), self.expression(other)
        a, b = aligned(left, right)
        duck, spark = _COMPARISONS[node.key]
        label = f"({left.label} {spark} {right.label})"
        if node.key == "neq":
            label = f"(NOT {label})"
        kinds = (left.kind, right.kind)
        if any(kind.whole for kind in kinds) and any(kind.name == DECIMAL for kind in kinds):
            label += UNKNOWN  # Spark rounds the fraction
        return Typed(f"({a} {duck} {b})", BOOL, label)

    def _of_between(self, node: exp.Between) -> Typed:
        this, low, high = parts(node, "this", "low", "high")
        value = self.expression(this)
        bottom, top = self.expression(low), self.expression(high)
        a, first = aligned(value, bottom)
        b, last = aligned(value, top)
        label = f"between({value.label}, {bottom.label}, {top.label})"
        return Typed(f"({a} >= {first} AND {b} <= {last})", BOOL, label)

    def _of_in(self, node: exp.In) -> Typed:
        this, listed, query = parts(node, "this", "expressions", "query")
        value = self.expression(this)
        if query is not None:
            if id(node) not in self.joined:
                raise NeedsSpark("IN with a query as a value")
            text, kinds = self.subquery(query)
            if len(kinds) != 1 or not alike(value.kind, kinds[0]):
                raise NeedsSpark("IN with a query of another type")
            return Typed(f"({value.sql} IN {text})", BOOL, f"({value.label} IN (listquery()))")
        made = [self.expression(each) for each in listed]
        if not all(alike(value.kind, each.kind) for each in made):
            raise NeedsSpark("IN with values of other types")
        inside = ", ".join(each.sql for each in made)
        labels = ", ".join(each.label for each in made)
        return Typed(f"({value.sql} IN ({inside}))", BOOL, f"({value.label} IN ({labels}))")

    def _of_exists(self, node: exp.Exists) -> Typed:
        before = self.correlated
        text, _ = self.subquery(*parts(node, "this"))
        unclear = UNKNOWN if self.correlated > before else ""
        return Typed(f"EXISTS {text}", BOOL, f"exists(){unclear}")

    def _of_subquery(self, node: exp.Subquery) -> Typed:
        before = self.correlated
        text, kinds = self.subquery(node)
        if len(kinds) != 1:
            raise NeedsSpark("a query of several columns as a value")
        unclear = UNKNOWN if self.correlated > before else ""
        return Typed(text, kinds[0], f"scalarsubquery(){unclear}")

    def _of_like(self, node: exp.Like) -> Typed:
        return self._pattern(node, "LIKE")

    def _of_ilike(self, node: exp.ILike) -> Typed:
        return self._pattern(node, "ILIKE")

    def _pattern(self, node: exp.Expr, word: str) -> Typed:
        this, pattern, negate = parts(node, "this", "expression", "negate")
        value, like = self._text(this), self._text(pattern)
        if not pattern.is_string or "\\" in str(pattern.this):
            raise NeedsSpark(f"{word} with such a pattern")
        if word == "LIKE":
            text, label = f"({value.sql} LIKE {like.sql})", f"{value.label} LIKE {like.label}"
        else:
            text = f"(hb_lower({value.sql}) LIKE hb_lower({like.sql}))"
            label = f"ilike({value.label}, {like.label})"
        return _negated(Typed(text, BOOL, label), negate)

    def _of_regexplike(self, node: exp.Expr) -> Typed:
        this, pattern, negate = parts(node, "this", "expression", "negate")
        value = self._text(this)
        if not pattern.is_string:
            raise NeedsSpark("RLIKE with a pattern that is no literal")
        text = quoted(translated(str(pattern.this)))
        label = f"RLIKE({value.label}, {pattern.this})"
        return _negated(Typed(f"regexp_matches({value.sql}, {text})", BOOL, label), negate)

    # --- choices --------------------------------------------------------------------------------

    def _of_case(self, node: exp.Case) -> Typed:
        this, branches, default = parts(node, "this", "ifs", "default")
        subject = None if this is None else self.expression(this)
        made, conditions, labels = [], [], ["CASE"]
        for each in branches:
            when, then = parts(each, "this", "true")
            condition = self.expression(when) if subject is not None else self._tested(when)
            result = self.expression(then)
            if subject is None:
                conditions.append(self._true(condition))
                labels.append(f"WHEN {condition.label} THEN {result.label}")
            else:
                a, b = aligned(subject, condition)
                conditions.append(f"{a} = {b}")
                equal = f"({subject.label} = {condition.label})"
                labels.append(f"WHEN {equal} THEN {result.label}")
            made.append(result)
        last = Typed("NULL", NULL, "NULL") if default is None else self.expression(default)
        labels += ["END"] if default is None else [f"ELSE {last.label}", "END"]
        made.append(last)
        kind = common((each.kind for each in made), "CASE")
        values = [as_kind(each, kind) for each in made]
        whens = [
            f"WHEN {when} THEN {then}" for when, then in zip(conditions, values[:-1], strict=True)
        ]
        return Typed(f"CASE {' '.join(whens)} ELSE {values[-1]} END", kind, " ".join(labels))

    def _of_if(self, node: exp.If) -> Typed:
        when, then, other = parts(node, "this", "true", "false")
        condition, first = self._tested(when), self.expression(then)
        last = Typed("NULL", NULL, "NULL") if other is None else self.expression(other)
        kind = common((first.kind, last.kind), "IF")
        test = self._true(condition)
        text = f"CASE WHEN {test} THEN {as_kind(first, kind)} ELSE {as_kind(last, kind)} END"
        return Typed(text, kind, f"(IF({condition.label}, {first.label}, {last.label}))")

    def _chosen(self, node: exp.Expr) -> Typed:
        name = str(node.key)
        this, others = parts(node, "this", "expressions")
        made = [self.expression(each) for each in (this, *others)]
        if len(made) < 2 and name != "coalesce":
            raise NeedsSpark(f"{name}() of one value")
        kind = common((each.kind for each in made), f"{name}()")
        labels = ", ".join(each.label for each in made)
        texts = ", ".join(as_kind(each, kind) for each in made)
        return Typed(f"{name}({texts})", kind, f"{name}({labels})")

    def _of_nullif(self, node: exp.Expr) -> Typed:
        this, other = parts(node, "this", "expression")
        value, null = self.expression(this), self.expression(other)
        a, b = aligned(value, null)
        text = f"CASE WHEN {a} = {b} THEN NULL ELSE {value.sql} END"
        return Typed(text, value.kind, f"nullif({value.label}, {null.label})")

    # --- numbers --------------------------------------------------------------------------------

    def _arithmetic(self, node: exp.Expr) -> Typed:
        this, other = parts(node, "this", "expression", flags=("typed",))
        sign, form = _ARITHMETIC[node.key]
        left = self.expression(this)
        if other.key == "interval" and left.kind == TIME and node.key in ("add", "sub"):
            text, label = self._interval(other)
            return Typed(f"({left.sql} {sign} {text})", TIME, f"{left.label} {sign} {label}")
        right = self.expression(other)
        label = f"({left.label} {sign} {right.label})"
        left, right = calculable(left, right, node.key)
        if node.key == "div":
            return Typed(f"hb_div({left.sql}, {right.sql})", DOUBLE, label)
        kind = common((left.kind, right.kind), sign)
        if self._spelled(node) == "mod":
            label = f"mod({left.label}, {right.label})"
        if node.key in ("intdiv", "mod"):
            if not kind.whole:
                raise NeedsSpark(f"{sign} of fractions")
            kind = LONG if node.key == "intdiv" else kind
        elif kind.name == DECIMAL:
            raise NeedsSpark("arithmetic of decimals")
        a, b = as_kind(left, kind), as_kind(right, kind)
        return Typed(form.format(a, b), kind, label)

    def _interval(self, node: exp.Expr) -> tuple[str, str]:
        this, unit = parts(node, "this", "unit")
        name = unit.name.upper().removesuffix("S") if unit is not None else ""
        amount = str(this.this) if this is not None else ""
        if name not in _SECONDS or not re.fullmatch(r"-?\d{1,9}", amount):
            raise NeedsSpark(f"the interval {node.sql('databricks')}")
        if abs(int(amount)) * _SECONDS[name] >= _LONGEST:
            raise NeedsSpark("so long an interval")
        days, shown = name in ("DAY", "WEEK"), int(amount) * (7 if name == "WEEK" else 1)
        digits = str(shown) if days else f"{'-' * (shown < 0)}{abs(shown):02}"
        return f"INTERVAL '{amount}' {name}", f"INTERVAL '{digits}' {'DAY' if days else name}"

    def _of_round(self, node: exp.Expr) -> Typed:
        this, digits = parts(node, "this", "decimals")
        value = self._numeric(self.expression(this), "round()")
        count = 0 if digits is None else whole_of(digits, "round()")
        if value.kind != DOUBLE or count > _DIGITS_MAX:
            raise NeedsSpark(f"round() of {value.kind.name}")
        label = f"round({value.label}, {count})"
        return Typed(f"hb_round({value.sql}, {count})", DOUBLE, label)

    def _of_floor(self, node: exp.Expr) -> Typed:
        return self._rounded(node, "floor")

    def _of_ceil(self, node: exp.Expr) -> Typed:
        return self._rounded(node, "ceil")

    def _rounded(self, node: exp.Expr, name: str) -> Typed:
        value = self.expression(*parts(node, "this"))
        if value.kind not in (INT, LONG, DOUBLE):
            raise NeedsSpark(f"{name}() of {value.kind.name}")
        label = f"{name.upper()}({value.label})"
        if value.kind.whole:
            return Typed(as_kind(value, LONG), LONG, label)
        return Typed(f"hb_whole({name}({value.sql}))", LONG, label)

    def _of_abs(self, node: exp.Expr) -> Typed:
        value = self._numeric(self.expression(*parts(node, "this")), "abs()")
        return Typed(f"abs({value.sql})", value.kind, f"abs({value.label})")

    def _numeric(self, value: Typed, where: str) -> Typed:
        if not value.kind.number:
            raise NeedsSpark(f"{where} of {value.kind.name}")
        return value

    # --- texts ----------------------------------------------------------------------------------

    def _text(self, node: exp.Expr) -> Typed:
        made = self.expression(node)
        if made.kind == NULL:
            return Typed("CAST(NULL AS VARCHAR)", TEXT, made.label)
        if made.kind != TEXT:
            raise NeedsSpark(f"{made.kind.name} where a text is expected")
        return made

    def _of_length(self, node: exp.Expr) -> Typed:
        value = self.expression(*parts(node, "this"))
        name = {TEXT: "length", BYTES: "octet_length"}.get(value.kind)
        if name is None:
            raise NeedsSpark(f"length() of {value.kind.name}")
        return Typed(f"CAST({name}({value.sql}) AS INTEGER)", INT, f"length({value.label})")

    def _of_concat(self, node: exp.Expr) -> Typed:
        (listed,) = parts(node, "expressions")
        return self._joined([self.expression(each) for each in listed], "concat")

    def _of_dpipe(self, node: exp.Expr) -> Typed:
        this, other = parts(node, "this", "expression")
        return self._joined([self.expression(this), self.expression(other)], "concat")

    def _joined(self, made: Sequence[Typed], name: str) -> Typed:
        texts = [converted(each, TEXT, f"{name}()") for each in made]
        labels = ", ".join(each.label for each in made)
        return Typed(f"({' || '.join(texts)})", TEXT, f"{name}({labels})")

    def _of_strposition(self, node: exp.Expr) -> Typed:
        this, part = parts(node, "this", "substr")
        value, sought = self._text(this), self._text(part)
        label = f"locate({sought.label}, {value.label}, 1)"
        if self._spelled(node) == "instr":
            label = f"instr({value.label}, {sought.label})"
        return Typed(f"CAST(instr({value.sql}, {sought.sql}) AS INTEGER)", INT, label)

    def _of_substring(self, node: exp.Expr) -> Typed:
        this, start, length = parts(node, "this", "start", "length")
        value = self._text(this)
        begin = max(whole_of(start, "substring()"), 1)
        count = INT_END - 1 if length is None else whole_of(length, "substring()")
        name = "substring" if self._says(_SUBSTRING) else "substr"
        if name == "substring" and self._says(_SUBSTR):
            name += UNKNOWN
        label = f"{name}({value.label}, {start.this}, {count})"
        return Typed(f"substring({value.sql}, {begin}, {count})", TEXT, label)

    def _of_left(self, node: exp.Expr) -> Typed:
        this, count = parts(node, "this", "expression")
        value, length = self._text(this), whole_of(count, "left()")
        return Typed(f"left({value.sql}, {length})", TEXT, f"left({value.label}, {length})")

    def _of_jsonextractscalar(self, node: exp.Expr) -> Typed:
        this, path = parts(node, "this", "expression")
        value = self._text(this)
        steps = [] if path.key != "jsonpath" else path.expressions[1:]
        keys = [(each.key, each.this) for each in steps]
        if not keys or any(
            not isinstance(step, int if kind == "jsonpathsubscript" else str)
            or kind not in ("jsonpathkey", "jsonpathsubscript")
            or not _STEP.fullmatch(str(step))
            for kind, step in keys
        ):
            raise NeedsSpark(f"the path {path.sql('databricks')[:60]} of get_json_object()")
        inside = "$" + "".join(
            f"[{step}]" if type(step) is int else f'."{step}"' for _, step in keys
        )
        spark = "$" + "".join(f"[{step}]" if type(step) is int else f".{step}" for _, step in keys)
        unclear = UNKNOWN if self._says(_QUOTED_STEP) else ""
        label = f"get_json_object({value.label}, {spark}){unclear}"
        other = [_twice(value.sql, step) for _, step in keys if type(step) is str]
        if keys[-1][0] == "jsonpathsubscript":
            other.append(f"json_type({value.sql}, {quoted(inside)}) = 'NULL'")
        text = f"hb_json({value.sql}, {quoted(inside)}, {' OR '.join(other)})"
        return Typed(text, TEXT, label)

    # --- maps -----------------------------------------------------------------------------------

    def _of_bracket(self, node: exp.Expr) -> Typed:
        this, keys = parts(node, "this", "expressions", flags=("offset",))
        value = self.expression(this)
        if value.kind.inner is None or len(keys) != 1:
            raise NeedsSpark("an element of an array")
        key = self._text(keys[0])
        label = f"{value.label}[{key.label}]"
        return Typed(f"({value.sql})[{key.sql}]", value.kind.inner, label)

    # --- times ----------------------------------------------------------------------------------

    def _of_tsordstodate(self, node: exp.Expr) -> Typed:
        value = self.expression(*parts(node, "this"))
        if value.kind not in (TIME, DATE):
            raise NeedsSpark(f"{value.kind.name} as a date")
        return Typed(f"CAST({value.sql} AS DATE)", DATE, f"to_date({value.label})")

    def _of_timestamptrunc(self, node: exp.Expr) -> Typed:
        this, unit = parts(node, "this", "unit")
        value, name = self.expression(this), unit.name.upper()
        if value.kind != TIME or name not in _TRUNCATED:
            raise NeedsSpark(f"date_trunc() of {value.kind.name} to {name}")
        text = f"date_trunc('{name.lower()}', {value.sql})"
        units = {unit for unit in self._says(_UNIT) if unit.upper() == name}
        shown = units.pop() if len(units) == 1 else UNKNOWN
        return Typed(text, TIME, f"date_trunc({shown}, {value.label})")

    # --- conversions ----------------------------------------------------------------------------

    def _of_cast(self, node: exp.Cast) -> Typed:
        this, to = parts(node, "this", "to")
        value = self.expression(this)
        kind = named_kind(to)
        name = kind.name
        if kind.name == DECIMAL:
            name += f"({kind.scale[0]},{kind.scale[1]})"
        label = self._name_of_literal(this, name) or f"CAST({value.label} AS {name})"
        return Typed(converted(value, kind, "CAST", cast=True), kind, label)

    def _name_of_literal(self, node: exp.Expr, name: str) -> str:
        """Return the name of a column of `DATE '2026-01-01'` or `1L`; "" for a plain CAST."""
        if node.key != "literal" or "end" not in node.meta:
            return ""
        start, end = node.meta["start"], node.meta["end"]
        text = str(node.this)
        if node.is_string:
            if not re.search(rf"(?i)\b{name}\s*$", self.written[max(start - _NEAR, 0) : start]):
                return ""
            midnight = " 00:00:00" if name == TIME.name and _DAY.fullmatch(text) else ""
            simple = _DAY if name == DATE.name or midnight else _MOMENT
            return f"{name} '{text}{midnight}'{'' if simple.fullmatch(text) else UNKNOWN}"
        if self.written[start : end + 1] == text:
            return ""
        return java_double(float(text)) if name == DOUBLE.name else text

    # --- what is the same in both ---------------------------------------------------------------

    def _call(
        self, node: exp.Expr, names: tuple[str, ...], kinds: Sequence[Kind], kind: Kind, form: str
    ) -> Typed:
        made = [self.expression(each) for each in parts(node, *names) if each is not None]
        filled = self._filled(called(node).removesuffix("()"), made, kinds, kind, form)
        if node.this.key != "tsordstodate":
            return filled
        # The parser puts a to_date() around what year() is given.
        label = f"{node.key}({self.expression(node.this.this).label})"
        return Typed(filled.sql, filled.kind, label)

    def _filled(
        self, name: str, made: Sequence[Typed], kinds: Sequence[Kind], kind: Kind, form: str
    ) -> Typed:
        if len(made) != len(kinds) or any(
            each.kind not in (wanted, NULL) for each, wanted in zip(made, kinds, strict=True)
        ):
            raise NeedsSpark(f"{name}() of {', '.join(each.kind.name for each in made)}")
        labels = ", ".join(each.label for each in made)
        return Typed(form.format(*(each.sql for each in made)), kind, f"{name}({labels})")


def _twice(text: str, name: str) -> str:
    """Return whether a name is twice in JSON."""
    written = quoted(f'"{name}"')
    return f"strlen(replace({text}, {written}, '')) < strlen({text}) - strlen({written})"


def _balanced(labels: Sequence[str], word: str) -> str:
    """Return a chain of AND or OR as Spark writes it: as a tree whose halves are alike."""
    if len(labels) == 1:
        return labels[0]
    middle = (len(labels) + 1) // 2
    return f"({_balanced(labels[:middle], word)} {word} {_balanced(labels[middle:], word)})"


def _negated(made: Typed, negate: object) -> Typed:
    return Typed(f"(NOT {made.sql})", BOOL, f"(NOT {made.label})") if negate else made


_COMPARISONS = {
    "eq": ("=", "="),
    "neq": ("<>", "="),
    "gt": (">", ">"),
    "gte": (">=", ">="),
    "lt": ("<", "<"),
    "lte": ("<=", "<="),
    "nullsafeeq": ("IS NOT DISTINCT FROM", "<=>"),
}
_SPELLED = {
    **{name: name for name in ("ceiling", "char_length", "character_length", "ifnull", "lcase")},
    **{name: name for name in ("len", "now", "nvl", "ucase")},
    "regexp_like": "REGEXP_LIKE",
}
"""What Spark calls columns of functions that have another name, too."""
_CHOICES = ("coalesce", "greatest", "least")
_ARITHMETIC = {
    "add": ("+", "({} + {})"),
    "sub": ("-", "({} - {})"),
    "mul": ("*", "({} * {})"),
    "div": ("/", ""),
    "intdiv": ("div", "CAST(({} // {}) AS BIGINT)"),
    "mod": ("%", "({} % {})"),
}
_ONE = ("this",)
_TWO = ("this", "expression")
_CALLS: dict[str, tuple[tuple[str, ...], Sequence[Kind], Kind, str]] = {
    "upper": (_ONE, (TEXT,), TEXT, "hb_upper({0})"),
    "lower": (_ONE, (TEXT,), TEXT, "hb_lower({0})"),
    "trim": (_ONE, (TEXT,), TEXT, "trim({0}, ' ')"),
    "startswith": (_TWO, (TEXT, TEXT), BOOL, "starts_with({0}, {1})"),
    "endswith": (_TWO, (TEXT, TEXT), BOOL, "ends_with({0}, {1})"),
    "contains": (_TWO, (TEXT, TEXT), BOOL, "contains({0}, {1})"),
    "year": (_ONE, (DATE,), INT, "CAST(year({0}) AS INTEGER)"),
    "month": (_ONE, (DATE,), INT, "CAST(month({0}) AS INTEGER)"),
    "day": (_ONE, (DATE,), INT, "CAST(day({0}) AS INTEGER)"),
    "hour": (_ONE, (TIME,), INT, "CAST(hour({0}) AS INTEGER)"),
    "minute": (_ONE, (TIME,), INT, "CAST(minute({0}) AS INTEGER)"),
    "second": (_ONE, (TIME,), INT, "CAST(second({0}) AS INTEGER)"),
}
_ANONYMOUS: dict[str, tuple[Sequence[Kind], Kind, str]] = {
    "octet_length": ((BYTES,), INT, "CAST(octet_length({0}) AS INTEGER)"),
    "unix_millis": ((TIME,), LONG, "CAST(floor(epoch_us({0}) / 1000) AS BIGINT)"),
}
