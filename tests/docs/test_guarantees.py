"""Every promise names tests that attack it, and those exist and run with `make test`."""

from __future__ import annotations

import ast

import pytest

from tests.docs.markdown import ROOT, read, rows

GUARANTEES = read(ROOT / "docs/reference/guarantees.md")
PROMISES = [title for title in GUARANTEES.titles(2) if title[1].isdigit()]


def attacks(promise: str) -> list[str]:
    """The tests that a promise names."""
    return [row[0] for row in rows(GUARANTEES.section(promise))]


def test_the_promises_are_numbered_from_one_to_thirteen() -> None:
    assert [title.split()[0] for title in PROMISES] == [f"P{n}" for n in range(1, 14)]


@pytest.mark.parametrize("promise", PROMISES)
def test_the_tests_that_attack_a_promise_exist(promise: str) -> None:
    named = attacks(promise)
    assert named
    for each in named:
        path, _, name = each.partition("::")
        functions = {
            node.name: node
            for node in ast.walk(ast.parse((ROOT / path).read_text()))
            if isinstance(node, ast.FunctionDef)
        }
        assert name in functions, f"{promise} names {each}, which is not there"
        marks = [ast.unparse(mark) for mark in functions[name].decorator_list]
        assert "pytest.mark.soak" not in marks, f"{each} runs only in the soak"


def test_the_rows_of_the_track_record_are_complete() -> None:
    record = read(ROOT / "docs/internals/track-record.md")
    for row in rows(record.section("Runs")):
        assert len(row) == 5, row
    for row in rows(record.section("Faults")):
        assert len(row) == 4, row
        assert all(part.strip() for part in row), row
        path, _, name = row[3].partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(), row
