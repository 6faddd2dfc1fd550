"""Errors of a disk that fails to read, as opposed to bytes that are read and are damaged.

A bad sector, a lost network file system and a block whose checksum the file system rejects are
reported as errors of the disk, with the file and the offset. Nothing is repaired then: the bytes
may still exist, on this disk or on a copy of it.
"""

from __future__ import annotations

import errno

from harebell.base.errors import DiskError, StoreError

_READ_ERRORS = (errno.EIO, errno.EBADMSG, errno.ENXIO, errno.ESTALE)


def refused(what: str, error: OSError) -> StoreError:
    """Return the error to raise for a failed system call of the store.

    Args:
        what: the failed operation, for errors that are not the disk's.
        error: the system's error, with the file's name.
    """
    if error.errno in _READ_ERRORS and error.filename:
        return DiskError(cannot_read(str(error.filename), error.strerror or str(error)))
    return StoreError(f"{what}: {error}")


def cannot_read(path: str, why: str) -> str:
    """Return the error text for a file that the disk does not read."""
    return (
        f"the disk cannot read {path} ({why}): nothing says that its content is damaged; look at "
        "the disk and the system's log, and start again"
    )
