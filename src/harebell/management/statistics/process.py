"""Figures of this process, from /proc and the interpreter."""

from __future__ import annotations

import gc
import os
import resource
from pathlib import Path
from typing import NamedTuple

_SELF = Path("/proc/self")
_KIB = 1024


class Process(NamedTuple):
    """Figures of the process.

    Args:
        rss: resident memory in bytes.
        files: open files and sockets; 0 where /proc is missing.
        threads: threads.
        context_switches: voluntary and involuntary ones.
        collections: runs of the garbage collector.
        read_bytes, written_bytes: what storage has read and written for this process.
        reads, writes: system calls that read and write, sockets included.
    """

    rss: int
    files: int
    threads: int
    context_switches: int
    collections: int
    read_bytes: int
    written_bytes: int
    reads: int
    writes: int


def figures() -> Process:
    """Return the figures of this process now."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    status = _table(_SELF / "status")
    io = _table(_SELF / "io")
    return Process(
        rss=_first(status, "VmRSS") * _KIB or usage.ru_maxrss * _KIB,
        files=_open_files(),
        threads=_first(status, "Threads") or 1,
        context_switches=usage.ru_nvcsw + usage.ru_nivcsw,
        collections=sum(each["collections"] for each in gc.get_stats()),
        read_bytes=_first(io, "read_bytes"),
        written_bytes=_first(io, "write_bytes"),
        reads=_first(io, "syscr"),
        writes=_first(io, "syscw"),
    )


def _open_files() -> int:
    """Count the open files.

    Since Linux 6.2 the size of the directory is their number. Before, it is 0, and the names have
    to be listed.
    """
    directory = _SELF / "fd"
    try:
        return directory.stat().st_size or len(os.listdir(directory))
    except OSError:
        return 0


def _table(path: Path) -> dict[str, str]:
    """Read lines of `name: value`; {} where the file is missing or may not be read."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _first(table: dict[str, str], name: str) -> int:
    """Return the number at the start of a value; 0 if there is none."""
    words = table.get(name, "").split()
    return int(words[0]) if words and words[0].isdecimal() else 0
