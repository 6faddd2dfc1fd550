"""The figures of a process, compared with what it does itself.

It is a process of its own: in that of the tests, threads and collections of the tests before open
and close files, and free memory, at any time.
"""

from __future__ import annotations

import gc
import subprocess
import sys

from harebell.management.statistics.process import figures
from tests.patience import SECONDS

_FILES = """
import os
from harebell.management.statistics.process import figures
before = figures().files
opened = [os.open("/", os.O_RDONLY) for _ in range(7)]
print(figures().files - before)
"""
_MEMORY = """
import mmap
from harebell.management.statistics.process import figures
before = figures().rss
# New pages: the allocator could serve a bytearray from memory that this process has freed.
with mmap.mmap(-1, 60_000_000) as kept:
    kept.write(b"x" * len(kept))
    print(figures().rss - before)
"""


def _printed(code: str) -> int:
    """The number that a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    return int(done.stdout)


def test_open_files_are_counted() -> None:
    assert _printed(_FILES) == 7


def test_memory_and_time_are_those_of_a_running_interpreter() -> None:
    before = figures()
    assert 5_000_000 < before.rss < 10**11
    assert before.threads >= 1
    gc.collect()
    assert figures().collections > before.collections


def test_memory_grows_with_what_is_kept() -> None:
    assert _printed(_MEMORY) > 30_000_000
