"""Split a text at the semicolons between statements, as it is typed or piped in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """True if a text ends with a semicolon that ends a statement, or with a comment behind one."""
    places = _places(text)
    return places is not None and len(places) > 0 and places[-1][1]


def split(text: str) -> Iterator[PlacedStatement]:
    """Yield the statements of a text; the last one needs no semicolon."""
    begun, empty = 0, True
    places = _places(text)
    for start, ends in [*([(0, False)] if places is None else places), (len(text), True)]:
        if not ends:
            empty = False
            continue
        if not empty:
            sql = text[begun:start]
            before = begun + len(sql) - len(sql.lstrip())
            yield PlacedStatement(sql.strip(), text.count("\n", 0, before) + 1)
        begun, empty = start + 1, True


def _places(text: str) -> Sequence[tuple[int, bool]] | None:
    """Return where tokens begin, and which end a statement; None in an open string or comment."""
    try:
        from sqlglot import TokenType, tokenize
        from sqlglot.errors import TokenError
    except ImportError:
        raise PipelineError("this needs sqlglot: pip install 'harebell[spark]'") from None
    try:
        tokens = tokenize(text, read="spark")
    except TokenError:
        return None
    return [(token.start, token.token_type is TokenType.SEMICOLON) for token in tokens]
