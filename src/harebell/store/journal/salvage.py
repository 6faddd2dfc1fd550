"""Find the changes of a damaged row that can still be used.

    checksum right        only the head is damaged: every change is as it was written
    checksum wrong        some byte is damaged, and it is unknown which: of the changes that can
                          still be decoded, those are used that cannot destroy anything

Files of logs have a checksum for each record, so bytes of a file may be written where nothing is
yet: the start of the broker finds the records among them that are damaged, and keeps the others. A
removal, a declaration or another change that may be damaged itself is not made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harebell.base.errors import StoreError
from harebell.kernels.records import crc32c
from harebell.store.journal.changes import (
    DEFINITION,
    END,
    HEAD_BYTES,
    SNAPSHOT,
    WRITE,
    Change,
    changes_of,
    checksum_of,
    size_of,
)
from harebell.store.journal.pieces import PIECE_BYTES
from harebell.store.journal.row_compression import unchecked

_PATH = re.compile(r"(?:queues/[\w.~%+-]+|quarantine)/[\w.~%+-]+")


class Salvage(NamedTuple):
    """The changes of a damaged row that can be used.

    Args:
        sure: whether all changes are as they were written.
        changes: the changes that are used.
        unused: how many other changes could be decoded.
        declarations: the kinds of declarations in the row, for people.
    """

    sure: bool
    changes: list[Change]
    unused: int = 0
    declarations: tuple[str, ...] = ()


def salvaged(content: bytes, sizes: Mapping[str, int], *, has_image: bool) -> Salvage:
    """Return the changes of a damaged row that can be used.

    Args:
        content: of the row.
        sizes: of all files, by path, before the row.
        has_image: whether there are definitions already.
    """
    sure = len(content) >= HEAD_BYTES and crc32c(content[HEAD_BYTES:]) == checksum_of(content)
    changes: list[Change] = []
    whole = False
    # The damaged head may hide that the row is compressed, so both readings are tried.
    for row in (content, unchecked(content)):
        read = list(_readable_changes(row))
        if len(read) > len(changes):
            changes = read
        whole = bool(read) and sum(map(size_of, read)) + HEAD_BYTES == len(row)
        if whole:
            changes = read
            break
    if sure and whole:
        return Salvage(True, changes)
    known = dict(sizes)
    used = []
    for change in changes:
        if _is_harmless(change, known, has_image=has_image):
            used.append(change)
            if change.kind == WRITE:
                end = change.number + len(change.data)
                known[change.name] = max(known.get(change.name, 0), end)
    declared = tuple(f"'{each.name}'" for each in changes if each.kind == DEFINITION)
    return Salvage(False, used, len(changes) - len(used), declared)


def _readable_changes(row: bytes) -> Iterator[Change]:
    """Yield changes up to the first that cannot be one."""
    try:
        for change in changes_of(memoryview(row)):
            if not WRITE <= change.kind <= END:
                return
            yield change
    except (ValueError, StoreError):
        return


def _is_harmless(change: Change, sizes: Mapping[str, int], *, has_image: bool) -> bool:
    """True if a change that may be damaged can be made."""
    if change.kind == END:
        return True
    if change.kind == SNAPSHOT:
        # It has checksums of its own, and nothing else has the definitions.
        return not has_image
    if change.kind != WRITE or not _PATH.fullmatch(change.name):
        return False
    size = sizes.get(change.name, 0)
    # Where it goes on, or a piece that was recorded once more.
    return change.number == size or change.number % PIECE_BYTES == 0
