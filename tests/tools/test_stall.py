"""tools/stall.py: processes that a command has started stand still for moments."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import eventually

_TOOL = str(Path(__file__).parents[2] / "tools" / "stall.py")
_UNTIL_STOPPED = """
import signal, sys
signal.signal(signal.SIGCONT, lambda *_: sys.exit())
while True:
    signal.pause()
"""
_STARTS_IT = """
import subprocess, sys
sys.exit(7 + subprocess.run([sys.executable, "-c", sys.argv[1]]).returncode)
"""


def _stalled(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, _TOOL, *command], capture_output=True, text=True, timeout=120, check=False
    )


def test_what_a_command_has_started_stands_still_and_goes_on() -> None:
    done = _stalled(sys.executable, "-c", _STARTS_IT, _UNTIL_STOPPED)
    assert done.returncode == 7, "the exit code is that of the command"
    said = re.fullmatch(
        r"(\d+) times a process was stopped \[HAREBELL_STALL_SEED=\d+\]\n", done.stderr
    )
    assert said
    assert int(said[1]) > 0


def test_a_command_that_starts_nothing_ends_undisturbed() -> None:
    done = _stalled(sys.executable, "-c", "print('alone')")
    assert (done.stdout, done.returncode) == ("alone\n", 0)
    assert done.stderr.startswith("0 times a process was stopped")


def test_the_seed_is_used_and_kept_from_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAREBELL_STALL_SEED", "12")
    done = _stalled(sys.executable, "-c", "import os; print(os.environ.get('HAREBELL_STALL_SEED'))")
    assert done.stdout == "None\n"
    assert done.stderr.endswith("[HAREBELL_STALL_SEED=12]\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_stays_stopped_when_the_tool_is_ended(number: signal.Signals) -> None:
    script = (
        "import subprocess, sys;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print(child.pid, flush=True); child.wait()"
    )
    with subprocess.Popen(
        [sys.executable, _TOOL, sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as tool:
        assert tool.stdout is not None
        child = int(tool.stdout.readline())
        assert eventually(lambda: _state(child) == "T")
        tool.send_signal(number)
        assert eventually(lambda: _state(child) != "T")
        os.kill(child, signal.SIGKILL)
        tool.wait(60)


def _state(pid: int) -> str:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat[stat.rindex(")") + 2]
