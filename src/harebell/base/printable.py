"""Text for terminals: what a peer chose as a name is shown there, and never obeyed.

Control characters, and others that do not print, become escapes that JSON has too, so that a line
of JSON stays one.
"""

from __future__ import annotations

_PLANE = 0x10000


def printable(text: str, keep: str = "") -> str:
    """The text with everything escaped that does not print.

    Args:
        text: from anywhere.
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
