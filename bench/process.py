"""What a process and its children have used, from /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _stat(pid: int) -> list[str] | None:
    """The fields after the command's name, which may have spaces in it; None when it is gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def family(pid: int) -> list[int]:
    """A process and everything that descends from it."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    family = [pid]
    for each in family:
        family.extend(children.get(each, ()))
    return family


def cpu_seconds(pid: int) -> float:
    """User and system time of the family so far.

    It is that of all threads in ticks, or that of the threads of now to the nanosecond: a short
    load on a busy machine may take less than a tick, and threads that have ended count, too.
    """
    return sum(max(_in_ticks(each), _exact(each)) for each in family(pid))


def exact_cpu_seconds(pid: int) -> float:
    """What the threads of one process have used so far, to the nanosecond where Linux tells it."""
    return _exact(pid) or cpu_seconds(pid)


def _in_ticks(pid: int) -> float:
    fields = _stat(pid)
    return 0.0 if fields is None else (int(fields[11]) + int(fields[12])) / _TICKS


def _exact(pid: int) -> float:
    used = 0
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in (_PROC / str(pid) / "task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                used += int((task / "schedstat").read_text().split()[0])
    return used / 1e9


def resident_bytes(pid: int) -> int:
    """Resident memory of the family."""
    byte_count = 0
    for each in family(pid):
        try:
            byte_count += int((_PROC / str(each) / "statm").read_text().split()[1]) * _PAGE
        except (FileNotFoundError, ProcessLookupError):
            continue
    return byte_count


def peak_bytes(pid: int) -> int:
    """The most resident memory of the family's processes of now, since `forget_peak`."""
    byte_count = 0
    for each in family(pid):
        try:
            text = (_PROC / str(each) / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for line in text.splitlines():
            if line.startswith("VmHWM:"):
                byte_count += int(line.split()[1]) * 1024
    return byte_count


def forget_peak(pid: int) -> None:
    """Let `peak_bytes` count from now on, for the processes of the family."""
    for each in family(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            # 5 sets the peak of the resident memory to what it is: proc(5), clear_refs.
            (_PROC / str(each) / "clear_refs").write_text("5")
