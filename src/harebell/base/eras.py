"""Eras: which numbers two histories of one log, or of one lease group, have in common.

A broker that is restored from a backup gives positions and claim numbers again that it has given
before. So a start of the broker begins an *era* with a random name, and each log and each lease
group keeps the list of its eras with the first number of each:

    5d0c6a3f9e21b784:0 77aa01c4d2e8f365:500        numbers from 500 on belong to the second era

A reader that keeps a number keeps the list as far as that number. Two lists have the same beginning
if one history comes from the other or both from a third. They part where the last era that both
have ends in one of them. docs/internals/eras.md explains it.
"""

from __future__ import annotations

import re

from harebell.base.limits import ERAS_KEPT, ERAS_OF_OFFSET

UNNAMED = "0" * 16
"""The era of messages from before eras were recorded."""
_TEXT = re.compile(r"(?:[0-9a-f]{16}:[0-9]{1,19}(?: (?!\Z))?)*\Z")


def is_eras(text: object) -> bool:
    """True for the text of a list of eras; the empty list is ""."""
    return isinstance(text, str) and _TEXT.match(text) is not None


def continued(text: str, name: str, first: int, start: int) -> str:
    """Return a list with a new era.

    Args:
        text: the list; "" if none was recorded.
        name: of the new era: 16 random hexadecimal digits.
        first: the first number of the new era. Eras that begin there or later have no numbers in
            this history, and are left out.
        start: the first number of all.
    """
    eras = [(each, begin) for each, begin in _parsed(text) if begin < first]
    if not text and first > start:
        eras = [(UNNAMED, start)]
    eras.append((name, first))
    return _text(eras[-ERAS_KEPT:])


def eras_before(text: str, number: int) -> str:
    """Return the eras of the numbers before one, the last few."""
    return _text([era for era in _parsed(text) if era[1] < number][-ERAS_OF_OFFSET:])


def shared_until(mine: str, other: str) -> int:
    """Return the first number that two histories do not share; 0 if they share no era.

    Where both go on in the same era, all numbers of the shorter one are shared: the result is
    larger than any number then.
    """
    ends = {name: end for name, _, end in _with_ends(other)}
    for name, _, end in reversed(_with_ends(mine)):
        if name in ends:
            return min(end, ends[name])
    return 0


def _with_ends(text: str) -> list[tuple[str, int, int]]:
    eras = _parsed(text)
    ends = [begin for _, begin in eras[1:]] + [_ENDLESS]
    return [(name, begin, end) for (name, begin), end in zip(eras, ends, strict=False)]


_ENDLESS = 2**64


def _parsed(text: str) -> list[tuple[str, int]]:
    pairs = [each.split(":") for each in text.split()]
    return [(name, int(begin)) for name, begin in pairs]


def _text(eras: list[tuple[str, int]]) -> str:
    return " ".join([f"{name}:{begin}" for name, begin in eras])
