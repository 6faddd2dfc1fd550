"""Properties and headers from the command line."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from harebell.cli.properties import headers_of, properties_of, property_flags
from harebell.client.message import PROPERTY_NAMES


def given(*flags: str) -> dict[str, Any]:
    """What the client would be told for some flags."""
    seen: dict[str, Any] = {}

    @click.command()
    @property_flags
    def verb(**values: Any) -> None:
        seen.update(properties_of(values))

    result = CliRunner().invoke(verb, flags, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return seen


def test_without_flags_a_message_is_persistent_and_nothing_else() -> None:
    assert given() == {"delivery_mode": 2}
    assert given("--transient") == {"delivery_mode": 1}


def test_every_property_but_the_reserved_one_has_a_flag() -> None:
    values = {
        **dict.fromkeys(PROPERTY_NAMES - {"headers", "delivery_mode", "cluster_id"}, "1"),
    }
    flags = [
        word for name, value in values.items() for word in ("--" + name.replace("_", "-"), value)
    ]
    assert set(given(*flags, "-H", "a=b")) == PROPERTY_NAMES - {"cluster_id"}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("1700000000", 1_700_000_000),
        ("1970-01-02", 86_400),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:01:00", 60),
    ],
)
def test_times_are_seconds_in_the_end(written: str, seconds: int) -> None:
    assert given("--timestamp", written)["timestamp"] == seconds


def test_now_is_a_time() -> None:
    assert given("--timestamp", "now")["timestamp"] > 1_700_000_000


def test_headers_are_text_or_json() -> None:
    pairs = ["a=b", "empty=", "eq=x=y", "n:=1", "f:=1.5", "t:=true", 'o:={"x": [null]}', "a=c"]
    assert headers_of(pairs) == {
        "a": "c",
        "empty": "",
        "eq": "x=y",
        "n": 1,
        "f": 1.5,
        "t": True,
        "o": {"x": [None]},
    }


@pytest.mark.parametrize("pair", ["novalue", "=x", ":=1", "n:=", "n:={"])
def test_a_header_that_is_none_says_how_to_write_it(pair: str) -> None:
    with pytest.raises(click.BadParameter, match="write "):
        headers_of([pair])
