"""Statements are split at the semicolons between them, and at no others."""

from __future__ import annotations

import pytest

from harebell.pipeline.sql.splitting import PlacedStatement, complete, split


def test_a_semicolon_in_a_string_or_comment_ends_no_statement() -> None:
    text = "SELECT ';' AS a; -- one; two\nSELECT 2\n  AS b;;\n SELECT 3"
    assert list(split(text)) == [
        PlacedStatement("SELECT ';' AS a", 1),
        PlacedStatement("-- one; two\nSELECT 2\n  AS b", 1),
        PlacedStatement("SELECT 3", 4),
    ]
    assert list(split(" \n ; ")) == []
    assert list(split("SELECT 1; -- two")) == [PlacedStatement("SELECT 1", 1)]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; \n", True),
        ("SELECT 1; -- two", True),
        ("SELECT 1 -- two;", False),
        ("SELECT 1", False),
        ("SELECT 1; SELECT", False),
        ("SELECT 'a;", False),
        ("SELECT 1 /* ;", False),
        ("", False),
    ],
)
def test_a_shell_waits_for_the_semicolon_that_ends_a_statement(text: str, whole: bool) -> None:
    assert complete(text) is whole
