"""The inventory: the number of segments of every log, written by an orderly close.

Segments are removed in any order, so a log alone does not show that a file is missing. The
inventory shows it at the next start.

    inventory   CRC-32C of the rest, 8 hexadecimal digits, and a line end
                then a line for each log with segments: its identity, a space, their number
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from harebell.base.ports import Files, write_all
from harebell.kernels.records import crc32c

NAME = "inventory"
_DRAFT = "inventory.new"
_HEAD_BYTES = 9


def write(files: Files, counts: Mapping[str, int]) -> None:
    """Write and sync the inventory; if the disk refuses, remove it.

    Args:
        files: the data directory.
        counts: the number of segments of each log, by identity.
    """
    lines = "".join([f"{name} {count}\n" for name, count in counts.items() if count]).encode()
    try:
        file = files.open(_DRAFT, create=True)
        try:
            file.truncate(0)
            write_all(file, b"%08x\n" % crc32c(lines) + lines, 0)
            file.sync()
        finally:
            file.close()
        files.rename(_DRAFT, NAME)
        files.sync_directory("")
    except OSError:
        # An older inventory would report segments that were removed since as missing.
        forget(files)


def read(files: Files) -> dict[str, int]:
    """Return the number of segments by identity; empty if the file is missing or damaged."""
    try:
        file = files.open(NAME)
    except OSError:
        return {}
    try:
        content = file.read_at(file.size(), 0)
    finally:
        file.close()
    lines = content[_HEAD_BYTES:]
    if content[:_HEAD_BYTES] != b"%08x\n" % crc32c(lines):
        return {}
    counts = {}
    for line in lines.decode("ascii").splitlines():
        name, _, count = line.partition(" ")
        counts[name] = int(count)
    return counts


def forget(files: Files) -> None:
    """Remove the inventory: the directory is in use, or the inventory cannot be written."""
    for name in (_DRAFT, NAME):
        with suppress(OSError):
            files.remove(name)
