"""How many segments every log has, written down when a directory is closed in good order.

Segments go one by one, wherever they stand in their log, so a log does not show that a file of it
is missing. This does, at the next start.

    inventory   CRC-32C of the rest, 8 hexadecimal digits, and a line end
                then a line for each log that has any: its identity, a space, how many
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from harebell.base.ports import Files
from harebell.kernels.records import crc32c
from harebell.store.commit import write_all

NAME = "inventory"
_DRAFT = "inventory.new"
_HEAD_OCTETS = 9


def write(files: Files, counts: Mapping[str, int]) -> None:
    """Write it down for good; on a disk that refuses there is none.

    Args:
        files: the data directory.
        counts: how many segments each log has, by identity.
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
        files.sync_folder("")
    except OSError:
        forget(files)


def read(files: Files) -> dict[str, int]:
    """What was written down; nothing when it is missing or damaged."""
    try:
        file = files.open(NAME)
    except OSError:
        return {}
    try:
        content = file.read_at(file.size(), 0)
    finally:
        file.close()
    lines = content[_HEAD_OCTETS:]
    if content[:_HEAD_OCTETS] != b"%08x\n" % crc32c(lines):
        return {}
    found = {}
    for line in lines.decode("ascii").splitlines():
        name, _, count = line.partition(" ")
        found[name] = int(count)
    return found


def forget(files: Files) -> None:
    """The directory is in use, or cannot be described."""
    for name in (_DRAFT, NAME):
        with suppress(OSError):
            files.remove(name)
