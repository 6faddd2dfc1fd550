"""Property tests try the same examples whatever else was loaded or ran before."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_TEST = """
import sys
{first}
from hypothesis import given, settings, strategies as st

@settings(max_examples=100)
@given(st.integers(), st.text())
def test_it(number, text):
    with open({file!r}, "a") as seen:
        print(number, ascii(text), file=seen)
"""


def _seen(run: pytest.Pytester, name: str, first: str = "") -> str:
    file = run.path / f"{name}.txt"
    file.unlink(missing_ok=True)
    run.makepyfile(**{f"test_{name}": _TEST.format(first=first, file=str(file))})
    run.runpytest_subprocess(f"test_{name}.py").assert_outcomes(passed=1)
    return file.read_text()


def test_a_module_that_is_loaded_changes_no_example(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HYPOTHESIS_PROFILE", raising=False)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{pytester.path}")
    pytester.makeconftest('pytest_plugins = ["tests.examples"]')
    constants = ", ".join(str(7**power) for power in range(20, 100))
    pytester.makepyfile(odd=f"NUMBERS = [{constants}]")
    seen = _seen(pytester, "it")
    assert len(seen.splitlines()) >= 100
    assert _seen(pytester, "it", "import odd") == seen
