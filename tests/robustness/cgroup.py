"""A group of processes that may have only so much memory, page cache included."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

_PATIENCE_SECONDS = 30.0


def _parents() -> Iterator[tuple[Path, str]]:
    """This process's own groups, and the name of the limit in a group below them."""
    mounted = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        root, mount = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup2" or (kind == "cgroup" and "memory" in options.split(",")):
            mounted[kind] = (root, mount)
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        kind = "cgroup" if "memory" in controllers.split(",") else "cgroup2"
        if kind in mounted and (kind == "cgroup" or not controllers):
            root, mount = mounted[kind]
            own = Path(mount + "/" + path.removeprefix(root))
            yield own, "memory.limit_in_bytes" if kind == "cgroup" else "memory.max"


def _make(octets: int) -> Path | None:
    for parent, limit in _parents():
        group = parent / f"harebell-{os.getpid()}-{time.time_ns()}"
        with contextlib.suppress(OSError):
            group.mkdir()
            try:
                (group / limit).write_text(str(octets))
            except OSError:
                group.rmdir()
                continue
            return group
    return None


@contextlib.contextmanager
def memory_limit(octets: int) -> Iterator[list[str]]:
    """A command in front of another that limits its memory.

    Args:
        octets: the limit.
    """
    group = _make(octets)
    assert group is not None, "no control group with a memory limit can be made here: run as root"
    try:
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "limited"]
    finally:
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            # Its last process may still be ending.
            try:
                group.rmdir()
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
