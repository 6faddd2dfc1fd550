"""What does not print is shown as an escape, which JSON reads back."""

from __future__ import annotations

import json

import pytest

from harebell.base.printable import printable


@pytest.mark.parametrize("text", ["", "orders", "Grüße 你好 🐇", "a b"])
def test_printable_characters_stay(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\u001b[2J"),
        ("\x9b2J\x7f", "\\u009b2J\\u007f"),
        ("a\nb\tc", "a\\u000ab\\u0009c"),
        ("\u202eevil", "\\u202eevil"),
        ("\udcff", "\\udcff"),
        ("\U000e0001", "\\udb40\\udc01"),
    ],
)
def test_characters_that_do_not_print_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert json.loads(f'"{shown}"') == text


def test_line_ends_may_stay() -> None:
    assert printable("a\n\x1bb", "\n") == "a\n\\u001bb"
