"""The parts of `make test`: what runs beside what, and what is said about it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A part is done when the file is there that it waits for; it leaves one, and its name in the log.
_MAKE = """
import pathlib, sys, time
part, _, awaited = sys.argv[1].partition(",")
with open("log", "a") as log:
    print(part, file=log)
pathlib.Path(part).touch()
while awaited and not pathlib.Path(awaited).exists():
    time.sleep(0.01)
for number in range(3):
    print(part, number, flush=True)
sys.exit(part.endswith("wrong"))
"""


@pytest.fixture
def make(tmp_path: Path) -> str:
    """A program in the place of make."""
    program = tmp_path / "make.py"
    program.write_text(_MAKE)
    return f"{sys.executable} {program}"


def parts(make: str, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run them in the directory of the program."""
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "parts.py", make, *lines],
        cwd=Path(make.split()[1]).parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_lines_run_beside_each_other_and_the_parts_of_one_after_the_other(
    make: str, tmp_path: Path
) -> None:
    # Both first parts wait until the other one has begun.
    done = parts(make, "a,x b", "x,a y,b")
    assert done.returncode == 0, done.stderr
    order = (tmp_path / "log").read_text().split()
    assert set(order[:2]) == {"a", "x"}
    assert set(order[2:]) == {"b", "y"}


def test_what_stands_alone_begins_when_all_before_it_are_over(make: str, tmp_path: Path) -> None:
    done = parts(make, "a,y", "x y", "", "alone")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text().split()[-1] == "alone"


def test_the_words_of_a_part_stay_together(make: str) -> None:
    done = parts(make, "a b", "c")
    for part in "abc":
        assert f"{part} 0\n" in done.stdout
    for part in "ab":
        assert f"{part} 0\n{part} 1\n{part} 2\n" in done.stdout


def test_what_fails_keeps_nothing_from_running_and_is_named(make: str) -> None:
    done = parts(make, "wrong b", "x", "", "alone")
    assert done.returncode == 1
    said = re.sub(r"\d+ s", "N s", done.stderr)
    assert said == "wrong: N s, failed\nb: N s\nx: N s\nalone: N s\n"


def test_what_failed_is_printed_once_more_at_the_end(make: str) -> None:
    for lines in (("wrong", "x"), ("x", "wrong")):
        done = parts(make, *lines, "", "alone")
        assert done.stdout.count("wrong 0\nwrong 1\nwrong 2\n") == 2
        assert done.stdout.endswith("\n== wrong, failed\nwrong 0\nwrong 1\nwrong 2\n")


def test_of_what_pytest_says_only_the_failures_are_repeated(tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(
        "print('before', '===== FAILURES =====', 'what failed', sep='\\n'); raise SystemExit(1)"
    )
    done = parts(f"{sys.executable} {tmp_path / 'make.py'}", "part")
    assert done.stdout.endswith("\n== part, failed\n===== FAILURES =====\nwhat failed\n")


def test_a_process_that_a_part_leaves_behind_does_not_hold_up_the_end(tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(
        "import subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
        "print('left', left.pid)\n"
    )
    done = parts(f"{sys.executable} {tmp_path / 'make.py'}", "kept", "shown")
    pids = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("left ")]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert (done.returncode, len(pids)) == (0, 2)
