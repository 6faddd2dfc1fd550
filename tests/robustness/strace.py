"""Faults at chosen system calls of the real process, injected by strace.

strace stops the broker at the N-th call of a kind and kills it there, or has the call fail. It is
a Debian package; without it a test fails and says how to get it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

RENAMES = "rename,renameat,renameat2"
MAX = 65_535
"""strace counts no further."""


def _strace() -> str:
    found = shutil.which("strace")
    assert found is not None, "strace is missing: apt-get install strace"
    return found


def kill_at(calls: str, number: int) -> list[str]:
    """The command in front of a broker that kills it at the N-th of these calls.

    Every thread and every call of a list is counted by itself. The call is not made any more.

    Args:
        calls: their names, with commas.
        number: which one, from 1.
    """
    return _inject(calls, f"signal=SIGKILL:when={number}")


def fail_at(calls: str, error: str, number: int, *, for_ever: bool = True) -> list[str]:
    """The command in front of a broker that has the N-th of these calls fail.

    Args:
        calls: their names, with commas.
        error: the error's name, such as EIO.
        number: which one, from 1.
        for_ever: whether all that follow fail too.
    """
    return _inject(calls, f"error={error}:when={number}{'+' if for_ever else ''}")


def _inject(calls: str, what: str) -> list[str]:
    # --seccomp-bpf would spare the calls that are not traced, but strace 6.1 miscounts with it.
    quiet = ["-f", "-qq", "-o", "/dev/null"]
    return [_strace(), *quiet, "-e", f"trace={calls}", "-e", f"inject={calls}:{what}"]


def log_to(command: list[str], file: Path) -> list[str]:
    """The same command, writing down every call that it watches."""
    return [str(file) if word == "/dev/null" else word for word in command]
