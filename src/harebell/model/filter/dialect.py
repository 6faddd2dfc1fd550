"""The two uses of the language: filters over the columns of a message, and selectors of consumers.

Both have one grammar. They differ where users know them from: a filter reads as Spark SQL over the
data source, a selector as the selectors of JMS.

                          filter                           selector
    a bare name           a column                         a header
    '5' beside a number   stands for 5                     is another type: the comparison is false
    a time                a time, beside a text or time    milliseconds since 1970
    `-` within a name     belongs to it                    is a minus
    LIKE without ESCAPE   a backslash escapes              nothing escapes
    0 before digits       means nothing                    means octal
"""

from __future__ import annotations

from typing import NamedTuple

from harebell.model.limits import (
    FILTER_CHARACTERS,
    FILTER_TERMS,
    SELECTOR_CHARACTERS,
    SELECTOR_TERMS,
)


class Dialect(NamedTuple):
    """How a text is read.

    Args:
        noun: what errors call it.
        bare_headers: whether a name alone is a header; otherwise it is a column. The other rules
            of selectors go with it.
        characters: the longest text.
        terms: the most columns and literals.
    """

    noun: str
    bare_headers: bool
    characters: int
    terms: int


FILTER = Dialect("filter", False, FILTER_CHARACTERS, FILTER_TERMS)
SELECTOR = Dialect("selector", True, SELECTOR_CHARACTERS, SELECTOR_TERMS)
