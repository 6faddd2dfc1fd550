"""The garbage collector rests while tests are collected, and works while they run."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_TEST = """
import gc
import weakref
COLLECTING = gc.isenabled()
class Circle:
    def __init__(self):
        self.itself = self
def test_collection_is_at_rest():
    assert not COLLECTING
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
def test_a_circle_of_a_test_is_freed():
    freed = []
    circle = Circle()
    weakref.finalize(circle, freed.append, 1)
    del circle
    gc.collect()
    assert freed == [1]
"""
_BROKEN = "raise LookupError('this module cannot be collected')"


def test_the_collector_works_again_when_tests_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest('pytest_plugins = ["tests.collecting"]')
    pytester.makepyfile(test_one=_TEST)
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=2)


def test_a_module_that_cannot_be_collected_is_reported(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest('pytest_plugins = ["tests.collecting"]')
    pytester.makepyfile(test_one=_TEST, test_broken=_BROKEN)
    done = pytester.runpytest_subprocess("-p", "no:xdist")
    assert done.ret != 0
    done.assert_outcomes(errors=1)
