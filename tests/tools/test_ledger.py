"""The ledger counts honestly: a rule passes when tests prove it, with and without pytest-xdist."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.ledger import ROOT
from tests.conformance.rule_list import load_not_applicable, load_rules
from tests.conformance.tally import Phase, Status, Tally

RULES = load_rules()
EXCUSES = load_not_applicable(RULES)
EXCUSED = next(iter(EXCUSES))
SETUP, CALL, TEARDOWN = (Phase(when, "passed") for when in ("setup", "call", "teardown"))
FAILED = Phase("call", "failed")
TESTS = """
import os, pytest

@pytest.mark.rule("0-9-1#037", "0-9-1r#011")
def test_passes():
    pass

@pytest.mark.rule("0-9-1#035")
@pytest.mark.parametrize("size", [1, 2])
def test_passes_in_one_case(size):
    assert size == 1

@pytest.mark.rule("0-9-1#049")
def test_skips():
    pytest.skip("no reason")

@pytest.mark.rule("0-9-1#038")
@pytest.mark.xfail(strict=False)
def test_known_bug():
    assert False
"""
DIES = """
@pytest.mark.rule("0-9-1#050")
def test_dies():
    os._exit(3)
"""


def ledger(
    directory: Path, text: str, *arguments: str
) -> tuple[int, str, dict[str, dict[str, int]]]:
    """Run pytest on this text: its exit code, what it printed, and the ledger that it wrote."""
    (directory / "test_inner.py").write_text(text)
    written = directory / "ledger.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.conformance.ledger", "-p", "no:asyncio"),
            *("--strict-markers", f"--ledger={written}", f"--rootdir={directory}", *arguments),
            str(directory / "test_inner.py"),
        ],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        timeout=570,
        check=False,
    )
    counts = json.loads(written.read_text()) if written.exists() else {}
    return done.returncode, done.stdout + done.stderr, counts


def test_a_rule_passes_only_when_no_test_that_carries_it_fails() -> None:
    tally = Tally(
        RULES,
        EXCUSES,
        {
            "good": ["0-8#001", "0-8#002", "0-8#003"],
            "bad": ["0-8#002"],
            "skipped": ["0-8#003", "0-8#004"],
            "crashed": ["0-8#005"],
        },
        {
            "good": [SETUP, CALL, TEARDOWN],
            "bad": [SETUP, FAILED, TEARDOWN],
            "skipped": [Phase("setup", "skipped"), TEARDOWN],
        },
    )
    assert [tally.status[f"0-8#00{number}"] for number in range(1, 6)] == [
        *(Status.PASSING, Status.FAILING, Status.PASSING, Status.MISSING, Status.FAILING)
    ]


@pytest.mark.parametrize(("workers", "died"), [("-n0", 0), ("-n2", 1)])
def test_only_rules_whose_tests_all_passed_are_counted_as_passing(
    tmp_path: Path, workers: str, died: int
) -> None:
    code, text, counts = ledger(tmp_path, TESTS + DIES * died, workers)
    assert code == pytest.ExitCode.TESTS_FAILED, text
    assert (counts["0-9-1"]["passing"], counts["0-9-1"]["failing"]) == (1, 2 + died)
    assert (counts["0-9-1r"]["passing"], counts["0-8"]["passing"]) == (1, 0)


@pytest.mark.parametrize("marker", ['"0-9-1#999"', "", f'"{EXCUSED}"'])
def test_a_wrong_marker_ends_the_run_and_no_ledger_is_written(tmp_path: Path, marker: str) -> None:
    wrong = f"\n@pytest.mark.rule({marker})\ndef test_marked():\n    pass\n"
    code, _, counts = ledger(tmp_path, TESTS + wrong)
    assert (code, counts) == (pytest.ExitCode.INTERRUPTED, {})
