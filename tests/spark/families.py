"""Programs that start programs: run as a session of the system, and ended to the last process.

A driver of Spark starts a JVM, this starts executors, and these start Python workers that are
leaders of process groups of their own. What they all keep is the session that the first was
started in.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.patience import eventually


@contextmanager
def family(
    command: Sequence[str], log: Path, environment: Mapping[str, str], directory: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is ended at the end, together with all that it has started.

    Args:
        command: the program.
        log: takes what it prints.
        environment: all of it.
        directory: where it runs.
    """
    with log.open("wb") as output:
        leader = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=directory,
            start_new_session=True,
        )
    try:
        yield leader
    finally:
        end(leader)


def end(leader: subprocess.Popen[bytes]) -> None:
    """End a program and all that it has started."""
    leader.terminate()
    try:
        leader.wait(30)
    except subprocess.TimeoutExpired:
        leader.kill()
        leader.wait()
    assert eventually(lambda: not _kill(members(leader.pid))), members(leader.pid)


def _kill(processes: list[int]) -> list[int]:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return processes


def members(session: int) -> list[int]:
    """The processes of a session that have not ended, whoever started them."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                state, _, _, its = _stat(int(directory.name))[:4]
            except OSError:
                continue
            if int(its) == session and state not in "ZX":
                found.append(int(directory.name))
    return found


def jvm_of(program: int) -> int:
    """The JVM of a program; not what that starts, which looks like it for a moment."""
    (found,) = (each for each in members(program) if _is_jvm_of(program, each))
    return found


def processor_seconds(process: int) -> float:
    """The processor time that a process has taken."""
    return sum(map(int, _stat(process)[11:13])) / os.sysconf("SC_CLK_TCK")


def _is_jvm_of(program: int, process: int) -> bool:
    try:
        name = Path(os.readlink(f"/proc/{process}/exe")).name
        return name == "java" and int(_stat(process)[1]) == program
    except OSError:
        return False


def _stat(process: int) -> list[str]:
    """The fields of proc(5) of a process, from its state on."""
    # The name stands in parentheses and may have anything in it.
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
