"""Offsets: stable as text, and refused when they are somebody else's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harebell.spark.offsets import START, Offset, OffsetError


def test_the_text_of_an_offset_does_not_change() -> None:
    offset = Offset(250_000, "4f0c2a")
    assert json.dumps(offset.to_json()) == '{"position": 250000, "spool": "4f0c2a"}'


def test_what_was_written_is_read() -> None:
    offset = Offset(7, "ab12")
    assert Offset.of_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_a_new_query_begins_before_the_first_delivery() -> None:
    assert Offset.of_json(START.to_json()) == Offset(0, "")


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        {},
        {"position": 7},
        {"position": "7", "spool": "ab"},
        {"position": True, "spool": "ab"},
        {"position": -1, "spool": "ab"},
        {"position": 7, "spool": None},
        {"position": 7, "spool": "../../etc"},
        {"position": 7, "spool": "ab\n"},
    ],
)
def test_an_offset_of_another_source_is_refused(value: Any) -> None:
    with pytest.raises(OffsetError, match="does the checkpoint belong to another query"):
        Offset.of_json(value)
