"""Split the text of a filter or selector into tokens."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from harebell.model.filter.dialect import Dialect
from harebell.model.filter.errors import FilterError, wrong_at

NAME = "name"
HEADER = "header"
STRING = "string"
NUMBER = "number"
SYMBOL = "symbol"
END = "end"

WORDS = ("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "RLIKE", "IS", "ESCAPE")
CONSTANTS: dict[str, Any] = {"TRUE": True, "FALSE": False, "NULL": None}


def _pattern(name: str, suffix: str) -> re.Pattern[str]:
    # A number before a dot and a name, as in body.5.x, is a part of a path, as is one behind a dot.
    return re.compile(
        rf"""(?P<space>\s+)
        |(?P<number>(?:0[xX][0-9a-fA-F]+
            |(?:(?<![\w\])`.])[0-9]+\.(?=[eE][+-]?[0-9])|[0-9]+\.[0-9]+|[0-9]+\.(?![\w.`\[])
                |(?<![\w\])`])\.[0-9]+|[0-9]+)
             (?:[eE][+-]?[0-9]+)?){suffix}(?![A-Za-z_]))
        |(?P<name>{name})
        |(?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
        |(?P<quoted>`(?:[^`]|``)*`)
        |(?P<symbol><=|>=|<>|!=|==|[=<>().,\[\]+\-*/%])""",
        re.VERBOSE,
    )


_IN_FILTER = _pattern(r"[^\W\d][\w-]*|[0-9][\w-]*", "")
_IN_SELECTOR = _pattern(r"(?:[^\W\d]|\$)[\w$]*", "[lLfFdD]?")
_BRACKETED = re.compile(r"\[((?:[^\[\]'\"]|\[\[|\]\])(?:[^\[\]]|\[\[|\]\])*)\]")


class Token(NamedTuple):
    """A token.

    Args:
        kind: NAME, HEADER, STRING, NUMBER, SYMBOL or END.
        value: the name, the text, the number, or the symbol.
        start: the index of its first character.
        word: the name in capital letters, for keywords; "" for everything else.
    """

    kind: str
    value: Any
    start: int
    word: str = ""


def tokens_of(text: str, dialect: Dialect) -> list[Token]:
    """Return the tokens of a text; the last one is END.

    Raises:
        FilterError: it is too long, or has a character that begins no token.
    """
    if len(text) > dialect.characters:
        raise FilterError(
            f"the {dialect.noun} has {len(text)} characters, at most {dialect.characters} are "
            "allowed: shorten it"
        )
    pattern = _IN_SELECTOR if dialect.bare_headers else _IN_FILTER
    tokens: list[Token] = []
    start = 0
    while start < len(text):
        if text[start] == "[" and not _follows_name(tokens):
            bracketed = _BRACKETED.match(text, start)
            if bracketed is not None:
                name = bracketed.group(1).replace("[[", "[").replace("]]", "]")
                tokens.append(Token(HEADER, name, start))
                start = bracketed.end()
                continue
        match = pattern.match(text, start)
        if match is None:
            raise _unknown(text, start, dialect)
        token = _token(match, start, dialect)
        if token is not None:
            tokens.append(token)
        start = match.end()
    tokens.append(Token(END, None, len(text)))
    return tokens


def _follows_name(tokens: list[Token]) -> bool:
    """True if a bracket behind these tokens is an index, not the begin of a name."""
    if not tokens:
        return False
    last = tokens[-1]
    if last.kind == NAME:
        in_path = len(tokens) > 1 and tokens[-2].value == "." and tokens[-2].kind == SYMBOL
        return in_path or last.word not in WORDS
    return last.kind == HEADER or (last.kind == SYMBOL and last.value == "]")


def _token(match: re.Match[str], start: int, dialect: Dialect) -> Token | None:
    written = match.group()
    match match.lastgroup:
        case "space":
            return None
        case "number":
            return Token(NUMBER, _number(written, start, dialect), start)
        case "string":
            quote = written[0]
            return Token(STRING, written[1:-1].replace(quote * 2, quote), start)
        case "quoted":
            return Token(NAME, written[1:-1].replace("``", "`"), start)
        case "name":
            return Token(NAME, written, start, written.upper())
        case _:
            return Token(SYMBOL, written, start)


def _number(written: str, start: int, dialect: Dialect) -> int | float:
    if len(written) > _DIGITS:
        raise wrong_at(start, f"a number has at most {_DIGITS} characters", dialect)
    if written[:2] in ("0x", "0X"):
        return int(written.rstrip("lL"), 16)
    digits = written.rstrip("lLfFdD")
    if not digits.isdigit() or written[-1] in "fFdD":
        return float(digits)
    if dialect.bare_headers and len(digits) > 1 and digits[0] == "0":
        # Java's literals, which JMS has: a zero in front means octal.
        if not set(digits) <= set("01234567"):
            raise wrong_at(start, f"{written} is no octal number, as its 0 in front says", dialect)
        return int(digits, 8)
    return int(digits)


_DIGITS = 40


def _unknown(text: str, start: int, dialect: Dialect) -> FilterError:
    character = text[start]
    if character in "'\"`":
        why = f"the text that begins with {character} does not end: close it"
    elif character in "&|!":
        why = f"{character!r} is not known: write AND, OR or NOT"
    elif character in "~^$":
        why = f"{character!r} is not known: RLIKE takes a regular expression"
    else:
        why = f"{character!r} is not known: put texts between quotes"
    return wrong_at(start, why, dialect)
