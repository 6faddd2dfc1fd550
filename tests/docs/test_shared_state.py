"""docs/internals/shared-state.md has a row for every limit of what users share."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.limits import limits, packages

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "internals" / "shared-state.md"
_ROW = re.compile(r"^\| ((?:`[A-Z_]+`(?:, )?)+) \|", re.M)
_KINDS = (
    *("COUNT", "ENTRIES", "KEPT", "RUNNING", "SOURCES", "OFFENDERS", "HISTORIES", "CONNECTIONS"),
    *("GROUPS", "THREADS", "LINES", "REQUESTS", "REPORTS", "HANDSHAKES", "TAGS", "BRANCHES"),
    *("WAITING", "ADDRESS", "FILES", "TICKETS", "LINKS", "DETAILS", "GUESSES"),
)
"""Last words of limits that say how many of a thing there may be."""
_ELSEWHERE = {"client", "spark", "cli", "pipeline"}
"""Packages with limits that are none of the broker's."""
_NOT_SHARED = ("CLIENT_", "SPARK_", "DOCTOR_")
"""First words of such limits in packages that have limits of the broker, too."""


def _rows() -> set[str]:
    return {name for cell in _ROW.findall(PAGE.read_text()) for name in re.findall("[A-Z_]+", cell)}


def _limits() -> set[str]:
    found = limits(*sorted(set(packages()) - _ELSEWHERE))
    return {name for name in found if not name.startswith(_NOT_SHARED)}


def test_every_limit_of_a_count_has_a_row() -> None:
    counts = {name for name in _limits() if name.rpartition("_")[2] in _KINDS}
    assert counts - _rows() == set()


def test_every_row_is_about_a_limit() -> None:
    assert _rows() - _limits() == set()


def test_everything_with_shares_has_a_row() -> None:
    """The limit of each `Shares` and `FairCache` is in the page."""
    found = set()
    for path in (ROOT / "src" / "harebell").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                *("Shares", "FairCache"),
            ):
                found |= set(re.findall("[A-Z_]{5,}", ast.unparse(node)))
    assert found & _limits() - _rows() == set()
    assert found & _limits()


def test_every_test_of_the_page_exists() -> None:
    for path, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", PAGE.read_text()):
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
