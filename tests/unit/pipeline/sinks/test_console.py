"""Rows on the console are lines in columns, whatever is in them."""

from __future__ import annotations

from pyspark.sql import Row

from harebell.pipeline.sinks.console import cell, table


def test_columns_are_as_wide_as_they_need() -> None:
    assert table(("a", "name"), [(1, "x"), (100, None)]) == ["a    name", "1    x", "100  null"]


def test_every_value_is_one_short_printable_text() -> None:
    assert cell(b"ab\xff\n") == "ab� "
    assert cell(True) == "true"
    assert cell(1.5) == "1.5"
    assert cell(Row(a=1, b=None, c="x")) == "{a: 1, c: x}"
    assert cell({"k": [1, 2]}) == "{k: [1, 2]}"
    assert cell("\x1b[31m" + "x" * 100) == " [31m" + "x" * 52 + "..."
