"""Run a command, and stop processes that it has started for moments, as a busy machine does.

    stall.py python -m pytest tests/conformance

Again and again one or two processes below the command get SIGSTOP, and SIGCONT up to 0.7 seconds
later, now and then only after three. A test that asserts how long something takes fails under this
sooner or later. The command itself is not stopped, and neither are database servers and Java: they
have limits of their own.

HAREBELL_STALL_SEED starts the same moments and pauses again; the processes differ from run to run.
The command does not get this variable: a broker would take it for a key that it does not know.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

SEED = "HAREBELL_STALL_SEED"
_BETWEEN_SECONDS = (0.05, 0.4)
_PAUSES_SECONDS = (0.08, 0.15, 0.3, 0.7) * 4 + (3.0,)
_LEFT_ALONE = frozenset({"postgres", "etcd", "java", "beam.smp"})
_RUNS = frozenset("RSD")
"""States of proc(5) of a process that is neither stopped nor dead."""


def below(pid: int) -> Iterator[int]:
    """The processes that a process has started, and those that they have."""
    for task in _entries(Path(f"/proc/{pid}/task")):
        with suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from below(child)


def may_be_stopped(pid: int) -> bool:
    """Whether a process runs, and is not one of those that are left alone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # The name stands in parentheses and may have any characters.
    name, state = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2]
    return name not in _LEFT_ALONE and state in _RUNS


def stop_some(pid: int, chance: random.Random) -> int:
    """Stop one or two processes below another for a moment, and return how many."""
    found = [each for each in below(pid) if may_be_stopped(each)]
    chosen = chance.sample(found, min(len(found), chance.choice((1, 1, 2))))
    stopped = list(_signalled(chosen, signal.SIGSTOP))
    try:
        time.sleep(chance.choice(_PAUSES_SECONDS))
    finally:
        list(_signalled(stopped, signal.SIGCONT))
    return len(stopped)


def _signalled(processes: Iterable[int], number: signal.Signals) -> Iterator[int]:
    """Send a signal, and name those that were there to get it."""
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, number)
            yield each


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def main(command: list[str]) -> int:
    """Run the command, print what was done to stderr, and return the command's exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what is stopped has to go on
    seed = os.environ.pop(SEED, "") or str(random.randrange(2**32))
    chance = random.Random(seed)
    stops = 0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            time.sleep(chance.uniform(*_BETWEEN_SECONDS))
            stops += stop_some(process.pid, chance)
    print(f"{stops} times a process was stopped [{SEED}={seed}]", file=sys.stderr)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
