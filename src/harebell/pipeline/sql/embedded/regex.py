"""Translate regular expressions of Java to those of RE2, where they match the same."""

from __future__ import annotations

import re

from harebell.pipeline.sql.embedded.kinds import NeedsSpark

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_ESCAPED = "dDwW.\\-+*?()[]{}^$|/"
"""What may follow a backslash."""
_QUANTIFIERS = "*+?}"
_COUNTS = re.compile(r"\{\d{1,3}(,\d{0,3})?\}")


def translated(pattern: str) -> str:
    """Return a pattern that finds the same texts.

    Raises:
        NeedsSpark: it has something that is not the same in both.
    """
    out: list[str] = []
    index, inside = 0, False
    while index < len(pattern):
        sign = pattern[index]
        following = pattern[index + 1 : index + 2]
        if sign == "\\":
            if not following or following not in _ESCAPED:
                raise _other(f"\\{following}")
            out.append(sign + following)
            index += 1
        elif inside:
            if sign in "[&~":
                raise _other("[ within [...]")
            inside = sign != "]"
            out.append(sign)
        elif sign == "[":
            inside = True
            out.append(sign)
        elif sign == "{" and not _COUNTS.match(pattern, index):
            raise _other("{ that begins no count")
        elif sign == "(" and following == "?":
            raise _other("(?")
        elif sign == "+" and out and out[-1] in _QUANTIFIERS:
            raise _other("a possessive quantifier")
        elif sign == ".":
            out.append(f"[^{_LINE_ENDS}]")
        elif sign == "$":
            if following not in ("", "|", ")"):
                raise _other("$ within a pattern")
            out.append(rf"(?:(?:\r\n|[{_LINE_ENDS}])?\z)")
        else:
            out.append(sign)
        index += 1
    return "".join(out)


def _other(what: str) -> NeedsSpark:
    return NeedsSpark(f"{what} in a regular expression")
