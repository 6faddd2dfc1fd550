"""Parse a filter or selector into a tree; the docstring of the package has the grammar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harebell.base.names import nearest
from harebell.model.filter.columns import Column, Node, Step, column_of, header, utc
from harebell.model.filter.comparison import comparison, time_of
from harebell.model.filter.dialect import Dialect
from harebell.model.filter.errors import FilterError, wrong_at
from harebell.model.filter.matching import Match, like, pattern_octets, rlike
from harebell.model.filter.tokens import (
    CONSTANTS,
    END,
    HEADER,
    NAME,
    NUMBER,
    STRING,
    SYMBOL,
    WORDS,
    Token,
    tokens_of,
)
from harebell.model.limits import FILTER_DEPTH

_COMPARISONS = {
    **dict.fromkeys(("=", "=="), "="),
    **dict.fromkeys(("<>", "!="), "<>"),
    **{symbol: symbol for symbol in ("<", "<=", ">", ">=")},
}
_AGES = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_AGE_DIGITS = 12


class Operand(NamedTuple):
    """A part of a condition.

    Args:
        node: see `harebell.kernels.conditions`.
        start: the index of its first character.
        column: the column, if it is one alone.
        literal: whether it is a constant alone.
        value: the constant.
        depth: how deep it is nested, in operators of arithmetic.
    """

    node: Node
    start: int
    column: Column | None = None
    literal: bool = False
    value: Any = None
    depth: int = 0


class Parser:
    """Reads a text from left to right.

    Args:
        text: the filter or selector.
        dialect: which of both it is.

    Attributes:
        terms: the number of columns and literals so far.
        columns: the first names of its columns.
        reads_body: whether one of the columns needs the body.

    Raises:
        FilterError: the text is too long, or has what begins no token.
    """

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._tokens = tokens_of(text, dialect)
        self._dialect = dialect
        self._at = 0
        self._depth = 0
        self.terms = 0
        self.columns: set[str] = set()
        self.reads_body = False

    # --- tokens ---------------------------------------------------------------------------------

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != END
        return token

    def _takes(self, *wanted: str) -> Token | None:
        """Take the next token if it is one of these words or symbols."""
        token = self._next
        if token.word in wanted or (token.kind == SYMBOL and token.value in wanted):
            self._at += 1
            return token
        return None

    def _expect(self, wanted: str, why: str) -> None:
        if not self._takes(wanted):
            raise self._wrong(self._next, f"{wanted} is missing {why}")

    def _wrong(self, token: Token, text: str) -> FilterError:
        return wrong_at(token.start, text, self._dialect)

    # --- conditions -----------------------------------------------------------------------------

    def whole(self) -> Node:
        """Parse everything.

        Raises:
            FilterError: the text is no condition.
        """
        if self._next.kind == END:
            raise FilterError(
                f"the {self._dialect.noun} is empty: write a condition, such as redelivered"
            )
        node = self._condition().node
        token = self._next
        if token.kind == END:
            return node
        if token.value == ")":
            raise self._wrong(token, "there is no ( for this )")
        near = nearest(token.word, WORDS) if token.word not in ("", *WORDS) else None
        hint = f"did you mean {near}?" if near else "write AND or OR between two conditions"
        raise self._wrong(token, f"{token.value!r} is not expected here: {hint}")

    def _condition(self) -> Operand:
        self._deeper()
        first = self._conjunction()
        parts = [first]
        while self._takes("OR"):
            parts.append(self._conjunction())
        self._depth -= 1
        if len(parts) == 1:
            return first
        return Operand(("or", *[self._truth(part) for part in parts]), first.start)

    def _conjunction(self) -> Operand:
        first = self._negation()
        parts = [first]
        while self._takes("AND"):
            parts.append(self._negation())
        if len(parts) == 1:
            self._truth(first)
            return first
        return Operand(("and", *[self._truth(part) for part in parts]), first.start)

    def _truth(self, part: Operand) -> Node:
        """Return a part that stands where a condition has to stand."""
        # In brackets it may be an operand: (5) > size. Then it is checked where it ends up.
        if part.literal and not isinstance(part.value, bool | None) and self._depth <= 1:
            raise wrong_at(
                part.start,
                f"{part.value!r} is no condition: compare a column with it",
                self._dialect,
            )
        return part.node

    def _negation(self) -> Operand:
        token = self._takes("NOT")
        if token is None:
            return self._test(self._sum())
        self._deeper()
        node = self._truth(self._negation())
        self._depth -= 1
        return Operand(("not", node), token.start)

    def _deeper(self) -> None:
        # The parser recurses: brackets of a user must not exhaust the stack.
        self._depth += 1
        if self._depth > FILTER_DEPTH:
            raise self._wrong(
                self._next, f"conditions are nested at most {FILTER_DEPTH} times: simplify it"
            )

    def _test(self, left: Operand) -> Operand:
        token = self._next
        if token.kind == SYMBOL and token.value in _COMPARISONS:
            self._at += 1
            node = self._compared(_COMPARISONS[token.value], left, self._sum())
            return Operand(node, left.start)
        if self._takes("IS"):
            isnt = self._takes("NOT")
            self._expect("NULL", "after IS")
            null: Node = ("null", left.node)
            return Operand(("not", null) if isnt else null, left.start)
        negated = self._takes("NOT")
        listed = self._listed(left)
        if listed is not None:
            return Operand(("not", listed) if negated else listed, left.start)
        if negated:
            raise self._wrong(self._next, "IN, BETWEEN, LIKE or RLIKE is missing after NOT")
        return left

    def _listed(self, left: Operand) -> Node | None:
        if self._takes("IN"):
            self._expect("(", "after IN")
            items = [self._sum()]
            while self._takes(","):
                items.append(self._sum())
            self._expect(")", "at the end of the list")
            return self._in(left, items)
        if self._takes("BETWEEN"):
            low = self._sum()
            self._expect("AND", "between the two values of BETWEEN")
            return self._between(left, low, self._sum())
        if self._takes("LIKE"):
            return self._like(left)
        if self._takes("RLIKE", "REGEXP"):
            token = self._pattern()
            return ("match", left.node, self._compiled(rlike, token))
        return None

    def _pattern(self) -> Token:
        token = self._take()
        if token.kind != STRING:
            raise self._wrong(token, "a pattern in quotes is missing")
        self._count(token)
        return token

    def _compiled(self, compiled: Callable[[str], Match], token: Token) -> Match:
        try:
            return compiled(token.value)
        except FilterError as error:
            raise self._wrong(token, str(error)) from None

    def _like(self, left: Operand) -> Node:
        token = self._pattern()
        escape = "" if self._dialect.bare_headers else "\\"
        if self._takes("ESCAPE"):
            given = self._take()
            if given.kind != STRING or len(given.value) != 1:
                raise self._wrong(given, "ESCAPE takes one character in quotes")
            escape = given.value
        match = self._compiled(lambda pattern: like(pattern, escape), token)
        return ("like", left.node, match, *pattern_octets(token.value, escape))

    # --- operands -------------------------------------------------------------------------------

    def _count(self, token: Token) -> None:
        self.terms += 1
        if self.terms > self._dialect.terms:
            noun = self._dialect.noun
            raise self._wrong(
                token, f"a {noun} has at most {self._dialect.terms} columns and values"
            )

    def _sum(self) -> Operand:
        left = self._term()
        while token := self._takes("+", "-"):
            left = self._calculated(token, left, self._term())
        return left

    def _term(self) -> Operand:
        left = self._signed()
        while token := self._takes("*", "/", "%"):
            left = self._calculated(token, left, self._signed())
        return left

    def _calculated(self, token: Token, left: Operand, right: Operand) -> Operand:
        depth = 1 + max(left.depth, right.depth)
        if depth > FILTER_DEPTH:
            raise self._wrong(token, f"at most {FILTER_DEPTH} operators follow each other")
        return Operand((token.value, left.node, right.node), left.start, depth=depth)

    def _signed(self) -> Operand:
        token = self._takes("+", "-")
        if token is None:
            return self._operand()
        self._deeper()
        operand = self._signed()
        self._depth -= 1
        if operand.literal and type(operand.value) in (int, float):
            # A literal stays one: IN and BETWEEN of times and ages look at it.
            value = -operand.value if token.value == "-" else operand.value
            return operand._replace(node=("value", value), start=token.start, value=value)
        node: Node = ("neg", operand.node)
        if token.value == "+":
            node = ("neg", node)
        return Operand(node, token.start, depth=operand.depth)

    def _operand(self) -> Operand:
        token = self._take()
        if token.kind == SYMBOL and token.value == "(":
            inner = self._condition()
            self._expect(")", "at the end of the condition in brackets")
            return inner
        self._count(token)
        if token.word in CONSTANTS:
            return _constant(CONSTANTS[token.word], token.start)
        if token.kind in (STRING, NUMBER):
            return _constant(token.value, token.start)
        if token.kind == HEADER:
            return self._of(header(token.value), token)
        if token.kind == NAME and token.word not in WORDS:
            return self._column(token)
        if token.kind == END:
            noun = self._dialect.noun
            raise self._wrong(token, f"the {noun} ends where a column or a value is missing")
        raise self._wrong(token, f"a column or a value is missing before {token.value!r}")

    def _column(self, first: Token) -> Operand:
        if first.word == "UTC" and self._takes("("):
            self._expect(")", "after UTC(")
            return self._of(utc(self._dialect), first)
        path: list[Step] = [first.value]
        while self._next.value in (".", "[") and self._next.kind == SYMBOL:
            if self._takes("."):
                token = self._take()
                if token.kind not in (NAME, NUMBER, HEADER) or isinstance(token.value, float):
                    raise self._wrong(token, "a name is missing after the dot")
                path.append(str(token.value))
                continue
            self._at += 1
            token = self._take()
            if token.kind != STRING and not (type(token.value) is int and token.value >= 0):
                raise self._wrong(token, "an index or a name in quotes is missing after [")
            path.append(token.value)
            self._expect("]", "after the index")
        try:
            column = column_of(path, self._dialect)
        except FilterError as error:
            raise self._wrong(first, str(error)) from None
        return self._of(column, first)

    def _of(self, column: Column, token: Token) -> Operand:
        self.columns.add(column.name)
        self.reads_body = self.reads_body or column.reads_body
        return Operand(column.node, token.start, column)

    # --- comparisons ----------------------------------------------------------------------------

    def _compared(self, symbol: str, left: Operand, right: Operand) -> Node:
        if self._dialect.bare_headers:
            return (symbol, left.node, right.node, None)
        left, right = self._converted(left, right), self._converted(right, left)
        return (symbol, left.node, right.node, comparison(symbol))

    def _in(self, left: Operand, items: list[Operand]) -> Node:
        if left.literal:
            # A column beside it says what it stands for: each has its own.
            return ("or", *[self._compared("=", left, item) for item in items])
        mixed = None if self._dialect.bare_headers else comparison("=")
        nodes = [self._compared("=", left, item)[2] for item in items]
        return ("in", mixed, left.node, *nodes)

    def _between(self, left: Operand, low: Operand, high: Operand) -> Node:
        above, below = self._compared(">=", left, low), self._compared("<=", left, high)
        if left.literal:
            return ("and", above, below)
        mixed = None if self._dialect.bare_headers else (above[3], below[3])
        return ("between", mixed, left.node, above[2], below[2])

    def _converted(self, operand: Operand, beside: Operand) -> Operand:
        """Return a literal as the time or the age that the column beside it has."""
        column, value = beside.column, operand.value
        if not operand.literal or column is None or not isinstance(value, str):
            return operand
        if column.is_time:
            moment = time_of(value)
            if moment is None:
                why = f"{value!r} is no time: write one such as '2026-01-31T12:00:00Z'"
                raise wrong_at(operand.start, why, self._dialect)
            return _constant(moment, operand.start)
        if column.is_age:
            seconds = seconds_of(value)
            if seconds is None:
                why = f"{value!r} is no age: write one such as '90s', '5m', '2h'"
                raise wrong_at(operand.start, why, self._dialect)
            return _constant(seconds, operand.start)
        return operand


def _constant(value: Any, start: int) -> Operand:
    return Operand(("value", value), start, None, True, value)


def seconds_of(text: str) -> float | None:
    """Return the seconds of a time span such as "500ms", "90s", "5m", "2h" or "7d"; else None."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = _AGES.get(text[len(digits) :])
    if unit is None or not digits.isascii() or not digits.isdigit() or len(digits) > _AGE_DIGITS:
        return None
    return int(digits) * unit
