"""Escape text for terminals: names chosen by peers must not control the terminal.

Control characters, and others that do not print, become escapes that are valid in JSON too.
"""

from __future__ import annotations

_PLANE = 0x10000


def printable(text: str, keep: str = "") -> str:
    """Return the text with all unprintable characters escaped.

    Args:
        text: any text.
        keep: characters that stay although they do not print, such as a line end.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _escaped(c) for c in text)


def _escaped(letter: str) -> str:
    number = ord(letter)
    if number < _PLANE:
        return f"\\u{number:04x}"
    pair = letter.encode("utf-16-be")
    return f"\\u{pair[:2].hex()}\\u{pair[2:].hex()}"
