"""Patterns of PCRE, which RabbitMQ uses, as patterns of Python."""

from __future__ import annotations

import re

_SPACES = r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
_LINES = r"\n\v\f\r\x85\u2028\u2029"
_ESCAPES = {"h": f"[{_SPACES}]", "H": f"[^{_SPACES}]", "v": f"[{_LINES}]", "V": f"[^{_LINES}]"}
_ESCAPES |= {"z": r"\Z", "Z": "$", "R": rf"(?:\r\n|[{_LINES}])"}
_ESCAPES_IN_SET = {"h": _SPACES, "v": _LINES}
CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\v\f\r",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z_])")
_CLASS = re.compile(r"\[:(\^?[a-z]+):\]")
_OPPOSITE = re.compile(r"\[(\^?)\[:\^([a-z]+):\]\]")


def translated(pattern: str) -> str:
    r"""Return a pattern of PCRE as one of Python, which means the same.

    It knows classes in sets such as `[[:digit:]]`, their opposites alone in a set, named groups
    `(?<name>...)`, and the escapes `\h`, `\H`, `\v`, `\V`, `\R`, `\z` and `\Z`. What neither Python
    nor this knows stays as it is, and Python refuses it.

    Raises:
        re.error: a class is unknown, or not in a set.
    """
    parts = []
    at, end = 0, len(pattern)
    while at < end:
        letter = pattern[at]
        if letter == "\\" and at + 1 < end:
            parts.append(_ESCAPES.get(pattern[at + 1], pattern[at : at + 2]))
            at += 2
        elif _CLASS.match(pattern, at):
            raise re.error("classes such as [:digit:] are only known in sets", pattern, at)
        elif letter == "[":
            at = _translated_set(pattern, at, parts)
        elif _NAMED_GROUP.match(pattern, at):
            parts.append("(?P<")
            at += 3
        else:
            parts.append(letter)
            at += 1
    return "".join(parts)


def _translated_set(pattern: str, start: int, parts: list[str]) -> int:
    """Translate the set that begins at `start`; return the position after it."""
    opposite = _OPPOSITE.match(pattern, start)
    if opposite is not None and opposite[2] in CLASSES:
        # In a set with more it would be a range of a million characters, which is costly.
        parts.append(f"[{'' if opposite[1] else '^'}{CLASSES[opposite[2]]}]")
        return opposite.end()
    at = start + 2 if pattern[start + 1 : start + 2] == "^" else start + 1
    parts.append(pattern[start:at])
    first = at
    while at < len(pattern):
        letter = pattern[at]
        if letter == "]" and at > first:
            parts.append("]")
            return at + 1
        named = _CLASS.match(pattern, at)
        if named is not None:
            if named[1] not in CLASSES:
                raise re.error(f"the class {named[0]} is not supported here", pattern, at)
            parts.append(CLASSES[named[1]])
            at = named.end()
        elif letter == "\\":
            following = pattern[at + 1 : at + 2]
            parts.append(_ESCAPES_IN_SET.get(following, pattern[at : at + 2]))
            at += 2
        elif pattern.startswith(("[.", "[="), at):
            raise re.error("collating elements are not supported", pattern, at)
        else:
            # Python warns of these, as it may read sets of sets one day.
            parts.append(f"\\{letter}" if letter in "[&~|" else letter)
            at += 1
    return at
