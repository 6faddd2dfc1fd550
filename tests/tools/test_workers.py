"""Rooms of tests stay with one worker each, and begin first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workers import ROOMS, places, room_of

ROOT = Path(__file__).parents[2]
_TEST = """
import os, pathlib, time
{tests}
"""
_ONE = """
def test_{number}():
    time.sleep(0.02)
    with open({log!r}, "a") as log:
        print(os.environ["PYTEST_XDIST_WORKER"], __file__, file=log)
"""


def test_every_room_names_what_exists() -> None:
    assert [place for place in places() if not (ROOT / place).exists()] == []


def test_files_outside_of_rooms_are_by_themselves() -> None:
    assert room_of("tests/spark/test_demo.py") == 0
    assert room_of("tests/interop/client/test_x.py") == 1
    assert room_of("tests/interop/clients/test_x.py") == len(ROOMS)


def test_files_of_a_room_run_in_the_same_worker_and_before_others(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest('pytest_plugins = ["tests.workers"]')
    log = pytester.path / "log"
    text = _TEST.format(tests="".join(_ONE.format(number=n, log=str(log)) for n in range(4)))
    names = ("a/test_a", "cli/test_b", "spark/test_c", "spark/test_d", "interop/client/test_e")
    for name in (*names, "interop/differential/test_f", "unit/test_g", "unit/test_h"):
        file = pytester.path / "tests" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    done = pytester.runpytest_subprocess("-n2", "--dist=loadfile", "--import-mode=importlib")
    done.assert_outcomes(passed=32)
    ran = [line.split(maxsplit=1) for line in log.read_text().splitlines()]
    workers: dict[str, set[str]] = {}
    for worker, file in ran:
        workers.setdefault(file.split("/tests/")[-1], set()).add(worker)
    assert all(len(each) == 1 for each in workers.values())
    assert workers["spark/test_c.py"] == workers["spark/test_d.py"]
    assert workers["interop/client/test_e.py"] == workers["interop/differential/test_f.py"]
    assert workers["spark/test_c.py"] != workers["interop/client/test_e.py"]
    assert all(room_of(f"tests/{file.split('/tests/')[-1]}") < 2 for _, file in ran[:8])
