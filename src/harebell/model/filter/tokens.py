"""Split the text of a filter into tokens."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from harebell.model.filter.errors import FilterError, wrong_at
from harebell.model.limits import FILTER_CHARACTERS

NAME = "name"
STRING = "string"
NUMBER = "number"
SYMBOL = "symbol"
END = "end"

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![A-Za-z_]))
    |(?P<name>[^\W\d][\w-]*|[0-9][\w-]*)
    |(?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<symbol><=|>=|<>|!=|==|[=<>().,\[\]])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A token.

    Args:
        kind: NAME, STRING, NUMBER, SYMBOL or END.
        value: the name, the text, the number, or the symbol.
        start: the index of its first character.
        word: the name in capital letters, for keywords; "" for everything else.
    """

    kind: str
    value: Any
    start: int
    word: str = ""


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a filter; the last one is END.

    Raises:
        FilterError: it is too long, or has a character that begins no token.
    """
    if len(text) > FILTER_CHARACTERS:
        raise FilterError(
            f"the filter has {len(text)} characters, at most {FILTER_CHARACTERS} are allowed: "
            "shorten it"
        )
    tokens: list[Token] = []
    start = 0
    while start < len(text):
        match = _TOKEN.match(text, start)
        if match is None:
            raise _unknown(text, start)
        token = _token(match, start)
        if token is not None:
            tokens.append(token)
        start = match.end()
    tokens.append(Token(END, None, len(text)))
    return tokens


def _token(match: re.Match[str], start: int) -> Token | None:
    written = match.group()
    match match.lastgroup:
        case "space":
            return None
        case "number":
            return Token(NUMBER, _number(written, start), start)
        case "string":
            quote = written[0]
            return Token(STRING, written[1:-1].replace(quote * 2, quote), start)
        case "quoted":
            return Token(NAME, written[1:-1].replace("``", "`"), start)
        case "name":
            return Token(NAME, written, start, written.upper())
        case _:
            return Token(SYMBOL, written, start)


def _number(written: str, start: int) -> int | float:
    if len(written) > _DIGITS:
        raise wrong_at(start, f"a number has at most {_DIGITS} characters")
    return int(written) if written.lstrip("-").isdigit() else float(written)


_DIGITS = 40


def _unknown(text: str, start: int) -> FilterError:
    character = text[start]
    if character in "'\"`":
        return wrong_at(start, f"the text that begins with {character} does not end: close it")
    if character in "+*/%-":
        return wrong_at(start, f"{character!r} is not known: the language has no arithmetic")
    if character in "&|!":
        return wrong_at(start, f"{character!r} is not known: write AND, OR or NOT")
    if character in "~^$":
        return wrong_at(start, f"{character!r} is not known: RLIKE takes a regular expression")
    return wrong_at(start, f"{character!r} is not known: put texts between quotes")
