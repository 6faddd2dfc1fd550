"""Tests that wait are spread over the workers, and those of a module that shares stay together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from tests.spreading import WAITING

ROOT = Path(__file__).parents[2]
Ordered = Callable[[int], list[str]]
_PLAIN = """
import pytest
@pytest.mark.parametrize("number", range({count}))
def test_one(number):
    pass
"""
_SHARED = """
import pytest
@pytest.fixture(scope="module")
def dear():
    return 1
@pytest.mark.parametrize("number", range(6))
def test_one(number, dear):
    pass
"""
_LONG = """
import pytest
@pytest.mark.timeout(1_000)
def test_long():
    pass
@pytest.mark.soak
@pytest.mark.timeout(9_000)
@pytest.mark.parametrize("number", range(9))
def test_left_out(number):
    pass
"""
# Prints the order in which a worker of so many would get the tests.
_CONFTEST = """
import pytest
pytest_plugins = ["tests.spreading"]
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    config.addinivalue_line("markers", "soak: is left out")
    if {workers}:
        config.workerinput = {{"workercount": {workers}}}
"""


@pytest.fixture
def ordered(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Ordered:
    """The names of the files in the order of their tests, for a number of workers."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name, text in {
        f"{WAITING}test_wait": _PLAIN.format(count=8),
        f"{WAITING}test_wait_together": _SHARED,
        f"{WAITING}test_zz_long": _LONG,
        "tests/unit/test_calc": _PLAIN.format(count=50),
        "tests/unit/test_calc_together": _SHARED,
    }.items():
        file = pytester.path / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def order(workers: int) -> list[str]:
        pytester.makeconftest(_CONFTEST.format(workers=workers))
        done = pytester.runpytest_subprocess(
            *("--collect-only", "-q", "-m", "not soak", "-p", "no:xdist"), "--import-mode=importlib"
        )
        lines = [line for line in done.outlines if "::" in line]
        assert len(lines) == len(set(lines)) == 8 + 6 + 1 + 50 + 6
        return [Path(line.partition("::")[0]).stem for line in lines]

    return order


def test_without_workers_the_order_is_that_of_collection(ordered: Ordered) -> None:
    assert [name for name, _ in groupby(ordered(0))] == [
        "test_wait",
        "test_wait_together",
        "test_zz_long",
        "test_calc",
        "test_calc_together",
    ]


def pieces(tests: list[str], workers: int) -> list[list[str]]:
    """What each worker begins with, as pytest-xdist cuts it."""
    found = []
    for left in range(workers, 0, -1):
        found.append(tests[: len(tests) // left])
        tests = tests[len(tests) // left :]
    return found


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_every_worker_begins_with_its_share_of_what_waits(ordered: Ordered, workers: int) -> None:
    found = ordered(workers)
    assert found[0] == "test_zz_long", "what may take long begins first"
    for piece in pieces(found, workers):
        # Ten things wait: one takes long, one is the tests that share, and eight are alone.
        runs = [name for name, _ in groupby(piece) if "calc" not in name]
        assert len(runs) >= 10 // workers - 1
        # A border between pieces may lie within tests that stay together.
        assert {"test_wait", "test_wait_together", "test_zz_long"} & set(piece[:6])
    alone = [n for n, name in enumerate(found) if name in ("test_wait", "test_zz_long")]
    gaps = [after - before for before, after in pairwise(alone)]
    assert min(gaps) >= 3, "there is something to compute between what waits"


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_tests_that_share_a_fixture_of_their_module_stay_together(
    ordered: Ordered, workers: int
) -> None:
    runs = Counter(name for name, _ in groupby(ordered(workers)))
    assert runs["test_wait_together"] == runs["test_calc_together"] == 1
