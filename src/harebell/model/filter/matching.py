"""Match texts: LIKE, and regular expressions without backtracking."""

from __future__ import annotations

import re
from collections.abc import Callable

from harebell.base.patterns import PatternRefused, PatternTooSlow, linear_search_for
from harebell.kernels.conditions import ANY_CHARACTER, ANY_TEXT, LITERAL
from harebell.model.filter.errors import FilterError
from harebell.model.limits import FILTER_PATTERN_CHARACTERS, FILTER_TEXT_CHARACTERS

Match = Callable[[str], bool]


def like(pattern: str, escape: str = "\\") -> Match:
    """Return a function that compares a whole text with a pattern of LIKE.

    `%` stands for any characters, `_` for one, and an escape before them for themselves.

    Args:
        pattern: at most FILTER_PATTERN_CHARACTERS.
        escape: the character that escapes; "" for none.

    Raises:
        FilterError: the pattern is too long.
    """
    _check(pattern)
    parts = _parts(pattern, escape)
    first, *between = parts
    if not between:
        return lambda text: len(text) == len(first) and _fits(first, text, 0)
    last = between.pop()

    def match(text: str) -> bool:
        # The work for one message is limited, whatever it contains.
        text = text[:FILTER_TEXT_CHARACTERS]
        end = len(text) - len(last)
        if end < len(first) or not _fits(first, text, 0) or not _fits(last, text, end):
            return False
        index = len(first)
        for part in between:
            index = _find(part, text, index, end)
            if index < 0:
                return False
            index += len(part)
        return True

    return match


_ANY = ""
Part = tuple[str, ...]
"""Characters, of which `_ANY` stands for every character."""


def pattern_octets(pattern: str, escape: str) -> tuple[bytes, bytes]:
    """Return a pattern in UTF-8, and what each of its octets is (`harebell.kernels.conditions`)."""
    data, kinds = bytearray(), bytearray()
    for number, part in enumerate(_parts(pattern, escape)):
        # Runs of `%` are one: none of them has to take anything.
        if number and (not kinds or kinds[-1] != ANY_TEXT):
            data += b"%"
            kinds.append(ANY_TEXT)
        for character in part:
            encoded = character.encode("utf-8", "surrogateescape") or b"_"
            data += encoded
            kinds += bytes((ANY_CHARACTER if character == _ANY else LITERAL,)) * len(encoded)
    return bytes(data), bytes(kinds)


def _parts(pattern: str, escape: str) -> list[Part]:
    """Split a pattern at each `%`."""
    parts: list[list[str]] = [[]]
    escaped = False
    for character in pattern:
        if escaped or character not in ("%", "_", escape):
            parts[-1].append(character)
            escaped = False
        elif character == escape:
            escaped = True
        elif character == "%":
            parts.append([])
        else:
            parts[-1].append(_ANY)
    if escaped:
        parts[-1].append(escape)
    return [tuple(part) for part in parts]


def _fits(part: Part, text: str, index: int) -> bool:
    """True if a part is at an index of a text that is long enough."""
    if _ANY not in part:
        return text.startswith("".join(part), index)
    return all(wanted in (_ANY, text[index + n]) for n, wanted in enumerate(part))


def _find(part: Part, text: str, index: int, end: int) -> int:
    """Return the first index of a part in a text; -1 if there is none."""
    if _ANY not in part:
        return text.find("".join(part), index, end)
    # Without repeats `re` takes at most the length of the text times that of the pattern.
    pattern = "".join(re.escape(each) if each != _ANY else "." for each in part)
    match = re.compile(pattern, re.DOTALL).search(text, index, end)
    return -1 if match is None else match.start()


def rlike(pattern: str) -> Match:
    """Return a function that searches for a regular expression in a text.

    Raises:
        FilterError: it is invalid, or needs backtracking.
    """
    _check(pattern)
    try:
        search = linear_search_for(pattern)
    except PatternRefused as error:
        raise FilterError(f"the regular expression {pattern!r} {error}") from None

    def match(text: str) -> bool:
        try:
            return search(text[:FILTER_TEXT_CHARACTERS])
        except PatternTooSlow:
            raise FilterError(
                f"the regular expression {pattern!r} takes too long for a message: write one with "
                "fewer choices and repeats"
            ) from None

    return match


def _check(pattern: str) -> None:
    if len(pattern) > FILTER_PATTERN_CHARACTERS:
        raise FilterError(
            f"a pattern has at most {FILTER_PATTERN_CHARACTERS} characters, this one has "
            f"{len(pattern)}: shorten it"
        )
