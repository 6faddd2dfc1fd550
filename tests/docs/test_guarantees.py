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


def test_the_promises_are_numbered_from_one_to_fourteen() -> None:
    assert [title.split()[0] for title in PROMISES] == [f"P{n}" for n in range(1, 15)]


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
    for row in _record("runs"):
        assert len(row) == 5, row
    for row in _record("faults"):
        assert len(row) == 4, row
        assert all(part.strip() for part in row), row
        path = ""
        for shown in row[3].split(", "):
            file, _, name = shown.partition("::")
            path = file or path
            assert (f"def {name}(" if name else "") in (ROOT / path).read_text(), row


def _record(name: str) -> list[list[str]]:
    lines = (ROOT / f"docs/internals/record/{name}.tsv").read_text().splitlines()
    return [line.split("\t") for line in lines[1:]]
