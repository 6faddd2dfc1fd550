"""Durability as users write it."""

from __future__ import annotations

import pytest

from harebell.base.durability import Durability, parse_durability


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("fsync", Durability("fsync")),
        ("os", Durability("os")),
        ("interval", Durability("interval")),
        ("interval:1", Durability("interval", 1)),
        ("interval:60000", Durability("interval", 60_000)),
    ],
)
def test_every_word_means_what_it_says_and_is_shown_as_it_was_written(
    text: str, meant: Durability
) -> None:
    assert parse_durability(text) == meant
    assert str(meant) == text
    assert meant.waits == (text == "fsync")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "disk",
        "FSYNC",
        "fsync:5",
        "os:1",
        "interval:",
        "interval:0",
        "interval:60001",
        "interval:-1",
        "interval:\u0663",
        "interval:" + "9" * 5000,
    ],
)
def test_everything_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="is unknown: give one of fsync, interval, interval:MILL"):
        parse_durability(text)
