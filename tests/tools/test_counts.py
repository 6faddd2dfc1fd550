"""Counts and seeds of long tests stand at the end of a run."""

from __future__ import annotations

import pytest

from tests.counts import VARIABLE

_TEST = """
def test_much(seed, counted):
    counted(f"{seed % 1} of 5 lost")

def test_little():
    pass
"""
_FAILING = "def test_it(seed):\n    assert seed < 0\n"


@pytest.fixture
def run(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project of its own that has the plugin."""
    pytester.makeconftest('pytest_plugins = ["tests.counts"]')
    return pytester


def test_what_a_test_counted_is_printed_with_its_seed(
    run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "42")
    run.makepyfile(_TEST)
    done = run.runpytest_inprocess()
    done.assert_outcomes(passed=2)
    lines = [line for line in done.outlines if "::" in line]
    assert len(lines) == 1
    assert lines[0].endswith(f"::test_much: 0 of 5 lost [{VARIABLE}=42]")


def test_a_failure_shows_the_seed(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    run.makepyfile(_FAILING)
    done = run.runpytest_inprocess()
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines([rf"{VARIABLE}=\d+"])
