"""Every rule of 0-8 and 0-9-1 is tested, or excused; departures are in compatibility.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.ledger import ROOT
from tests.conformance.rule_list import load_not_applicable, load_rules

RULE = re.compile(r"0-(?:9-1r?|8|10t)#\d{3}")
PAGE = ROOT / "docs" / "protocols" / "compatibility.md"


def marked(path: Path, marker: str = "rule") -> Iterator[str]:
    """The rule ids in the markers of one test file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and marker in (
            getattr(node.func, "attr", ""),
            getattr(node.func, "id", ""),
        ):
            for argument in node.args:
                if isinstance(argument, ast.Constant):
                    yield str(argument.value)


def explained() -> set[str]:
    """The rule ids in the first column of the page's tables."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    found = [rule for row in rows for rule in RULE.findall(row.split("|")[1])]
    assert len(found) == len(set(found)), "a rule stands in two rows"
    return set(found)


@pytest.mark.parametrize("specification", ["0-8", "0-9-1", "0-9-1r"])
def test_each_rule_is_tested_excused_or_explained_and_only_one_of_them(specification: str) -> None:
    rules = load_rules()
    wanted = {rule for rule in rules if rules[rule].specification == specification}
    tested = {rule for path in (ROOT / "tests").rglob("test_*.py") for rule in marked(path)}
    excused = set(load_not_applicable(rules))
    reasons = explained()
    assert wanted <= tested | excused
    assert not tested & reasons, "a rule that the page says is broken has a test that claims it"


def test_the_ledger_says_of_each_rule_that_is_broken_on_purpose_that_it_is() -> None:
    departs = {
        rule for rule, why in load_not_applicable(load_rules()).items() if why.startswith("Departs")
    }
    assert {rule for rule in departs if RULE.fullmatch(rule)} == explained()


def test_for_each_rule_that_is_broken_a_test_shows_what_happens_instead() -> None:
    shown = [
        rule for path in (ROOT / "tests").rglob("test_*.py") for rule in marked(path, "departs")
    ]
    assert set(shown) == explained()
