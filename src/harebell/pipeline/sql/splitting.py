"""Split a text at the semicolons between statements, as it is typed or piped in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harebell.pipeline.errors import PipelineError


@dataclass(frozen=True)
class PlacedStatement:
    """A statement of a text.

    Args:
        sql: the statement, without its semicolon.
        line: where it begins in the text, counted from 1.
    """

    sql: str
    line: int


def complete(text: str) -> bool:
    """True if a text ends with a semicolon that ends a statement."""
    semicolons = _semicolons(text)
    return semicolons is not None and len(semicolons) > 0 and not text[semicolons[-1] + 1 :].strip()


def split(text: str) -> Iterator[PlacedStatement]:
    """Yield the statements of a text; the last one needs no semicolon."""
    begun = 0
    for end in [*(_semicolons(text) or []), len(text)]:
        sql = text[begun:end]
        if sql.strip():
            before = begun + len(sql) - len(sql.lstrip())
            yield PlacedStatement(sql.strip(), text.count("\n", 0, before) + 1)
        begun = end + 1


def _semicolons(text: str) -> list[int] | None:
    """Return the places of semicolons between statements; None in an open string or comment."""
    try:
        from sqlglot import TokenType, tokenize
        from sqlglot.errors import TokenError
    except ImportError:
        raise PipelineError("this needs sqlglot: pip install 'harebell[spark]'") from None
    try:
        tokens = tokenize(text, read="spark")
    except TokenError:
        return None
    return [token.start for token in tokens if token.token_type is TokenType.SEMICOLON]
