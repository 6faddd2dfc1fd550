"""The figures of this process, compared with what the test itself does."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from harebell.management.statistics.process import figures


def test_open_files_are_counted(tmp_path: Path) -> None:
    before = figures().files
    opened = [os.open(tmp_path, os.O_RDONLY) for _ in range(7)]
    try:
        assert figures().files == before + 7
    finally:
        for each in opened:
            os.close(each)


def test_memory_and_time_are_those_of_a_running_interpreter() -> None:
    process = figures()
    assert 5_000_000 < process.rss < 10**11
    assert process.cpu_us > 0
    assert process.threads >= 1
    assert process.collections >= 0


def test_memory_grows_with_what_is_kept() -> None:
    before = figures().rss
    # New pages: the allocator could serve a bytearray from memory that this process has freed.
    with mmap.mmap(-1, 60_000_000) as kept:
        kept.write(b"x" * len(kept))
        assert figures().rss - before > 30_000_000
