r"""Read terms of Erlang as configuration files have them, as in `advanced.config`.

    rabbit, 'a b'        an atom                    Atom
    30, -1, 16#ff, 0.4   a number                   int, float
    "text"               a string                   str
    <<"text">>           a binary                   bytes
    {a, b}               a tuple                    Tuple
    [a, b]               a list                     list

`%` begins a comment. A file has one term and a period behind it. Other terms, such as functions,
are errors that name the line.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

DEPTH_MAX = 64
_WORD = re.compile(
    r"""(?P<space>\s+|%[^\n]*)
    |(?P<number>[+-]?(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d{1,2}\#[0-9A-Za-z]+|\d+))(?![\w.#]*\#)
    |(?P<atom>[a-z][\w@]*|'(?:[^'\\\n]|\\.)*')
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<mark><<|>>|[\[\]{},.:/|])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "s": " ", "e": "\x1b", "0": "\0"}
_DIGITS_MAX = 400


class TermError(Exception):
    """A text is not a term.

    Args:
        line: the number of the line, from 1.
        reason: why the text there is not a term.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class Atom(str):
    """An atom, such as `true`."""


class Tuple(tuple[Any, ...]):
    """A tuple, with the number of the line where it begins.

    Attributes:
        line: the number of the line, from 1.
    """

    line: int = 0


def read_term(text: str) -> Any:
    """Return the term of a text.

    Raises:
        TermError: the text is not one term with a period behind it.
    """
    reader = _TermReader(text)
    if reader.at_end():
        return []
    term = reader.term(0)
    reader.expect(".")
    if not reader.at_end():
        reader.fail("there is something behind the period at the end of the term")
    return term


class _TermReader:
    """Reads terms from a text.

    Args:
        text: the content of a file in the format of `advanced.config`.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self._line = 1
        self._kind = self._word = ""
        self._next()

    def at_end(self) -> bool:
        """True if no word is left."""
        return not self._kind

    def expect(self, mark: str) -> None:
        """Read a mark such as `}`.

        Raises:
            TermError: the next word is another one.
        """
        if self._kind != "mark" or self._word != mark:
            self.fail(f"a {mark} is missing")
        self._next()

    def fail(self, reason: str) -> NoReturn:
        """Raise an error about the current line."""
        raise TermError(self._line, reason)

    def term(self, depth: int) -> Any:
        """Read a term.

        Raises:
            TermError: the next word does not begin a term.
        """
        if depth > DEPTH_MAX:
            self.fail(f"terms are nested more than {DEPTH_MAX} times")
        kind, word, line = self._kind, self._word, self._line
        if kind == "mark" and word in "[{<<":
            self._next()
            if word == "[":
                return self._members("]", depth)
            if word == "{":
                made = Tuple(self._members("}", depth))
                made.line = line
                return made
            return self._binary()
        if kind not in ("number", "atom", "string"):
            self.fail("a term is missing" if kind != "mark" else f"a {word} is not expected")
        self._next()
        if kind == "number":
            return self._number(word)
        if kind == "atom":
            return Atom(_unquoted(word) if word.startswith("'") else word)
        return self._string(word)

    def _string(self, word: str) -> str:
        """Return a string joined with the strings right behind it, as Erlang and C do."""
        parts = [_unquoted(word)]
        while self._kind == "string":
            parts.append(_unquoted(self._word))
            self._next()
        return "".join(parts)

    def _number(self, word: str) -> int | float:
        if len(word) > _DIGITS_MAX:
            self.fail("a number is too long")
        base, hash_mark, digits = word.partition("#")
        try:
            if hash_mark:
                return int(digits, int(base))
            return float(word) if "." in word else int(word)
        except ValueError:
            self.fail(f"{word} is not a number")

    def _binary(self) -> bytes:
        parts = []
        while self._word != ">>" or self._kind != "mark":
            if self._kind == "string":
                parts.append(_unquoted(self._word).encode())
                self._next()
            elif self._kind == "number" and self._word.isdigit() and int(self._word[:4]) < 256:
                parts.append(bytes([int(self._word[:4])]))
                self._next()
            else:
                self.fail('a binary is text in quotes or octets, such as <<"text">>')
            if self._word == "/" and self._kind == "mark":
                # A type such as /utf8: its two words change nothing here.
                self._next()
                self._next()
            if self._word == "," and self._kind == "mark":
                self._next()
        self._next()
        return b"".join(parts)

    def _members(self, end: str, depth: int) -> list[Any]:
        members: list[Any] = []
        while not (self._kind == "mark" and self._word == end):
            if members:
                self.expect(",")
            members.append(self.term(depth + 1))
        self._next()
        return members

    def _next(self) -> None:
        """Go on to the next word; the kind is "" at the end."""
        text = self._text
        while True:
            self._line += self._word.count("\n") if self._kind in ("space", "string") else 0
            if self._offset >= len(text):
                self._kind = self._word = ""
                return
            match = _WORD.match(text, self._offset)
            if match is None:
                self.fail(f"{text[self._offset]!r} is not expected")
            self._kind, self._word = match.lastgroup or "", match[0]
            self._offset = match.end()
            if self._kind != "space":
                return


def _unquoted(word: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), word[1:-1])
