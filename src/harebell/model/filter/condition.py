"""Parse a filter into functions that test a message; the docstring of the package has the grammar.

A test returns True, False or None: a condition on a value that a message does not have is neither
true nor false, and does not select the message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harebell.base.message import Message
from harebell.base.names import nearest
from harebell.model.filter.columns import Column, Getter, Step, column_of
from harebell.model.filter.comparison import Truth, comparison, time_of
from harebell.model.filter.errors import FilterError, wrong_at
from harebell.model.filter.matching import Match, like, rlike
from harebell.model.filter.subject import Subject
from harebell.model.filter.tokens import END, NAME, NUMBER, STRING, SYMBOL, Token, tokens_of
from harebell.model.limits import (
    FILTER_DEPTH,
    FILTER_JSON_BYTES,
    FILTER_OCTETS_PER_UNIT,
    FILTER_TERMS,
    FILTER_UNITS,
)

Test = Callable[[Subject], Truth]

_COMPARISONS = ("=", "==", "!=", "<>", "<", "<=", ">", ">=")
_CONSTANTS: dict[str, Any] = {"TRUE": True, "FALSE": False, "NULL": None}
_WORDS = ("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "RLIKE", "IS")
_AGES = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


class Filter:
    """A condition on messages.

    Args:
        text: the condition as it was written.
        test: tests a message.
        terms: how many columns and literals it has.
        columns: the names that its columns begin with.
        reads_body: whether it needs the bodies.
    """

    def __init__(
        self, text: str, test: Test, terms: int, columns: frozenset[str], *, reads_body: bool
    ) -> None:
        self.text = text
        self.columns = columns
        self.reads_body = reads_body
        self._test = test
        self._units = FILTER_UNITS + terms

    def selects(self, subject: Subject) -> bool:
        """True if the condition is true for a message.

        Raises:
            FilterError: the test of this message takes too long.
        """
        return self._test(subject) is True

    def units(self, message: Message) -> int:
        """Return the work units of testing a message."""
        if not self.reads_body:
            return self._units
        return self._units + min(len(message.body), FILTER_JSON_BYTES) // FILTER_OCTETS_PER_UNIT


def compile_filter(text: str) -> Filter:
    """Parse a filter.

    Raises:
        FilterError: it is invalid.
    """
    parser = _Parser(tokens_of(text))
    test = parser.whole()
    return Filter(text, test, parser.terms, frozenset(parser.columns), reads_body=parser.reads_body)


class _Operand(NamedTuple):
    """A column, or a literal if `column` is None.

    Args:
        get: returns its value.
        column: what is compared; None for a literal.
        value: the value of a literal.
        start: the index of its first character.
    """

    get: Getter
    column: Column | None
    value: Any
    start: int


class _Parser:
    """Reads tokens from left to right.

    Attributes:
        terms: the number of columns and literals so far.
        columns: the first names of its columns.
        reads_body: whether one of the columns needs the body.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
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

    def _takes(self, *wanted: str) -> bool:
        """Take the next token if it is one of these words or symbols."""
        token = self._next
        if token.word in wanted or (token.kind == SYMBOL and token.value in wanted):
            self._at += 1
            return True
        return False

    def _expect(self, wanted: str, why: str) -> None:
        if not self._takes(wanted):
            raise wrong_at(self._next.start, f"{wanted} is missing {why}")

    # --- conditions -----------------------------------------------------------------------------

    def whole(self) -> Test:
        """Parse everything."""
        if self._next.kind == END:
            raise FilterError("the filter is empty: write a condition, such as redelivered")
        test = self._condition()
        token = self._next
        if token.kind == END:
            return test
        if token.value == ")":
            raise wrong_at(token.start, "there is no ( for this )")
        near = nearest(token.word, _WORDS) if token.word else None
        hint = f"did you mean {near}?" if near else "write AND or OR between two conditions"
        raise wrong_at(token.start, f"{token.value!r} is not expected here: {hint}")

    def _condition(self) -> Test:
        self._deeper()
        tests = [self._conjunction()]
        while self._takes("OR"):
            tests.append(self._conjunction())
        self._depth -= 1
        return tests[0] if len(tests) == 1 else _combined(tests, decisive=True)

    def _conjunction(self) -> Test:
        tests = [self._negation()]
        while self._takes("AND"):
            tests.append(self._negation())
        return tests[0] if len(tests) == 1 else _combined(tests, decisive=False)

    def _negation(self) -> Test:
        if self._takes("NOT"):
            self._deeper()
            test = _opposite(self._negation())
            self._depth -= 1
            return test
        if self._takes("("):
            test = self._condition()
            self._expect(")", "at the end of the condition in brackets")
            return test
        return self._test(self._operand())

    def _deeper(self) -> None:
        # The parser recurses: brackets of a user must not exhaust the stack.
        self._depth += 1
        if self._depth > FILTER_DEPTH:
            raise wrong_at(
                self._next.start, f"conditions are nested at most {FILTER_DEPTH} times: simplify it"
            )

    def _test(self, left: _Operand) -> Test:
        token = self._next
        if token.kind == SYMBOL and token.value in _COMPARISONS:
            self._at += 1
            return _compared(str(token.value), left, self._operand())
        if self._takes("IS"):
            isnt = self._takes("NOT")
            self._expect("NULL", "after IS")
            return _opposite(_is_null(left)) if isnt else _is_null(left)
        negated = self._takes("NOT")
        test = self._listed(left)
        if test is not None:
            return _opposite(test) if negated else test
        if negated:
            raise wrong_at(self._next.start, "IN, BETWEEN, LIKE or RLIKE is missing after NOT")
        if left.column is None and not isinstance(left.value, bool | None):
            raise wrong_at(left.start, f"{left.value!r} is no condition: compare a column with it")
        return _is_true(left)

    def _listed(self, left: _Operand) -> Test | None:
        if self._takes("IN"):
            return self._one_of(left)
        if self._takes("BETWEEN"):
            low = self._operand()
            self._expect("AND", "between the two values of BETWEEN")
            high = self._operand()
            return _combined(
                [_compared(">=", left, low), _compared("<=", left, high)], decisive=False
            )
        if self._takes("LIKE"):
            return self._matched(left, like)
        if self._takes("RLIKE", "REGEXP"):
            return self._matched(left, rlike)
        return None

    def _one_of(self, left: _Operand) -> Test:
        self._expect("(", "after IN")
        tests = [_compared("=", left, self._literal())]
        while self._takes(","):
            tests.append(_compared("=", left, self._literal()))
        self._expect(")", "at the end of the list")
        return _combined(tests, decisive=True)

    def _matched(self, left: _Operand, compiled: Callable[[str], Match]) -> Test:
        token = self._take()
        if token.kind != STRING:
            raise wrong_at(token.start, "a pattern in quotes is missing")
        self._count(token)
        try:
            match = compiled(token.value)
        except FilterError as error:
            raise wrong_at(token.start, str(error)) from None
        get = left.get

        def test(subject: Subject) -> Truth:
            value = get(subject)
            if isinstance(value, bytes):
                value = value.decode("utf-8", "replace")
            return match(value) if isinstance(value, str) else None

        return test

    # --- operands -------------------------------------------------------------------------------

    def _count(self, token: Token) -> None:
        self.terms += 1
        if self.terms > FILTER_TERMS:
            raise wrong_at(token.start, f"a filter has at most {FILTER_TERMS} columns and values")

    def _literal(self) -> _Operand:
        token = self._next
        operand = self._operand()
        if operand.column is not None:
            raise wrong_at(token.start, "a list has only values: put texts between quotes")
        return operand

    def _operand(self) -> _Operand:
        token = self._take()
        self._count(token)
        if token.word in _CONSTANTS:
            return _constant(_CONSTANTS[token.word], token.start)
        if token.kind in (STRING, NUMBER):
            return _constant(token.value, token.start)
        if token.kind == NAME and token.word not in _WORDS:
            return self._column(token)
        if token.kind == END:
            raise wrong_at(token.start, "the filter ends where a column or a value is missing")
        raise wrong_at(token.start, f"a column or a value is missing before {token.value!r}")

    def _column(self, first: Token) -> _Operand:
        path: list[Step] = [first.value]
        while self._next.value in (".", "[") and self._next.kind == SYMBOL:
            if self._takes("."):
                token = self._take()
                if token.kind not in (NAME, NUMBER) or isinstance(token.value, float):
                    raise wrong_at(token.start, "a name is missing after the dot")
                path.append(str(token.value))
                continue
            self._at += 1
            token = self._take()
            if token.kind != STRING and not (type(token.value) is int and token.value >= 0):
                raise wrong_at(token.start, "an index or a name in quotes is missing after [")
            path.append(token.value)
            self._expect("]", "after the index")
        try:
            column = column_of(path)
        except FilterError as error:
            raise wrong_at(first.start, str(error)) from None
        self.columns.add(str(path[0]))
        self.reads_body = self.reads_body or column.reads_body
        return _Operand(column.get, column, None, first.start)


# --- tests ----------------------------------------------------------------------------------------


def _constant(value: Any, start: int) -> _Operand:
    return _Operand(lambda _: value, None, value, start)


def _compared(symbol: str, left: _Operand, right: _Operand) -> Test:
    left, right = _converted(left, right), _converted(right, left)
    compare = comparison(symbol)
    get, other = left.get, right.get
    if right.column is None:
        value = right.value
        return lambda subject: compare(get(subject), value)
    return lambda subject: compare(get(subject), other(subject))


def _converted(operand: _Operand, beside: _Operand) -> _Operand:
    """Return a literal as the time or the age that the column beside it has."""
    column, value = beside.column, operand.value
    if operand.column is not None or column is None or not isinstance(value, str):
        return operand
    if column.is_time:
        if time_of(value) is None:
            raise wrong_at(
                operand.start, f"{value!r} is no time: write one such as '2026-01-31T12:00:00Z'"
            )
        return _constant(time_of(value), operand.start)
    if column.is_age:
        seconds = seconds_of(value)
        if seconds is None:
            raise wrong_at(
                operand.start, f"{value!r} is no age: write one such as '90s', '5m', '2h'"
            )
        return _constant(seconds, operand.start)
    return operand


def seconds_of(text: str) -> float | None:
    """Return the seconds of a time span such as "500ms", "90s", "5m", "2h" or "7d"; else None."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = _AGES.get(text[len(digits) :])
    if unit is None or not digits.isascii() or not digits.isdigit() or len(digits) > _AGE_DIGITS:
        return None
    return int(digits) * unit


_AGE_DIGITS = 12


def _is_null(operand: _Operand) -> Test:
    get = operand.get
    return lambda subject: get(subject) is None


def _is_true(operand: _Operand) -> Test:
    get = operand.get

    def test(subject: Subject) -> Truth:
        value = get(subject)
        return value if isinstance(value, bool) else None

    return test


def _opposite(test: Test) -> Test:
    def opposite(subject: Subject) -> Truth:
        truth = test(subject)
        return None if truth is None else not truth

    return opposite


def _combined(tests: list[Test], decisive: bool) -> Test:
    """Return the test that all hold (`decisive` is False), or that one of them does (True)."""

    def test_combined(subject: Subject) -> Truth:
        unknown = False
        for test in tests:
            truth = test(subject)
            if truth is decisive:
                return decisive
            unknown = unknown or truth is None
        return None if unknown else not decisive

    return test_combined
