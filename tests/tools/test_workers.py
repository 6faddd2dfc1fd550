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
    assert room_of("tests/interop/client/test_x.py") < len(ROOMS)
    assert room_of("tests/interop/clients/test_x.py") == len(ROOMS)


def test_a_file_with_a_room_of_its_own_is_not_in_that_of_its_directory() -> None:
    directory = room_of("tests/interop/differential/test_differential.py")
    assert room_of("tests/interop/differential/test_x.py") == directory
    assert room_of("tests/interop/differential/test_mistakes.py") not in (directory, len(ROOMS))


def test_files_of_a_room_run_in_the_same_worker_and_before_others(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest('pytest_plugins = ["tests.workers"]')
    log = pytester.path / "log"
    text = _TEST.format(tests="".join(_ONE.format(number=n, log=str(log)) for n in range(4)))
    names = ("a/test_a", "cli/test_b", "interop/client/test_c", "interop/client/test_d")
    for name in (*names, "interop/client/test_e", "unit/test_f"):
        file = pytester.path / "tests" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    done = pytester.runpytest_subprocess("-n2", "--dist=loadfile", "--import-mode=importlib")
    done.assert_outcomes(passed=24)
    ran = [line.split(maxsplit=1) for line in log.read_text().splitlines()]
    workers: dict[str, set[str]] = {}
    for worker, file in ran:
        workers.setdefault(file.split("/tests/")[-1], set()).add(worker)
    assert all(len(each) == 1 for each in workers.values())
    room = (
        "interop/client/test_c.py",
        "interop/client/test_d.py",
        "interop/client/test_e.py",
    )
    assert len(set().union(*(workers[file] for file in room))) == 1
    first = [file.split("/tests/")[-1] for worker, file in ran if {worker} == workers[room[0]]]
    assert set(first[:12]) == set(room)
