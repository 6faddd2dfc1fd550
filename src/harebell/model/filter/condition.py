"""A compiled filter or selector: tests messages.

A test is true, false or unknown: a condition on a value that a message does not have is neither
true nor false, and does not select the message.
"""

from __future__ import annotations

from functools import lru_cache

from harebell.base.message import Message
from harebell.kernels.conditions import Condition
from harebell.model.filter.columns import is_settled
from harebell.model.filter.dialect import FILTER, SELECTOR, Dialect
from harebell.model.filter.indexing import Equality, equality_of
from harebell.model.filter.parser import Parser
from harebell.model.filter.subject import Subject
from harebell.model.limits import (
    FILTER_JSON_BYTES,
    FILTER_OCTETS_PER_UNIT,
    FILTER_UNITS,
    SELECTORS_KEPT,
)


class Filter:
    """A condition on messages.

    Args:
        text: the condition as it was written.
        condition: tests a message.
        terms: how many columns and literals it has.
        columns: the names that its columns begin with.
        equality: what it compares with constants, for an index over selectors; None for nothing.
        reads_body: whether it needs the bodies.
    """

    def __init__(
        self,
        text: str,
        condition: Condition,
        terms: int,
        columns: frozenset[str],
        equality: Equality | None = None,
        *,
        reads_body: bool,
    ) -> None:
        self.text = text
        self.condition = condition
        self.columns = columns
        self.equality = equality
        self.reads_body = reads_body
        self._units = FILTER_UNITS + terms

    def selects(self, subject: Subject) -> bool:
        """True if the condition is true for a message.

        Raises:
            FilterError: the test of this message takes too long.
        """
        return self.condition.test(subject.message, subject) == 1

    @property
    def is_settled(self) -> bool:
        """Whether it has the same result before a message is in a queue as there."""
        return is_settled(self.columns)

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
    return _compiled(text, FILTER)


@lru_cache(maxsize=SELECTORS_KEPT)
def compile_selector(text: str) -> Filter:
    """Parse a selector; equal ones that are in use share one object.

    Raises:
        FilterError: it is invalid.
    """
    return _compiled(text, SELECTOR)


def _compiled(text: str, dialect: Dialect) -> Filter:
    parser = Parser(text, dialect)
    tree = parser.whole()
    return Filter(
        text,
        Condition(tree, dialect.bare_headers),
        parser.terms,
        frozenset(parser.columns),
        equality_of(tree) if dialect.bare_headers else None,
        reads_body=parser.reads_body,
    )
