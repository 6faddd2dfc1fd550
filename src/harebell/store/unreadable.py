"""Errors of a disk that fails to read: not the same as octets that are read and are damaged.

A bad sector, a network file system that is gone and a block whose checksum the file system rejects
are reported as the disk's, with the file and the offset. Nothing is repaired then: the octets may
still be there, and a copy of the disk may have them.
"""

from __future__ import annotations

import errno

from harebell.base.errors import DiskError, StoreError

_READ_ERRORS = (errno.EIO, errno.EBADMSG, errno.ENXIO, errno.ESTALE)


def refused(what: str, error: OSError) -> StoreError:
    """Return the error to raise where the store was refused something.

    Args:
        what: what cannot be done, where the disk is not at fault.
        error: what the system said; its file name is that of the file.
    """
    if error.errno in _READ_ERRORS and error.filename:
        return DiskError(cannot_read(str(error.filename), error.strerror or str(error)))
    return StoreError(f"{what}: {error}")


def cannot_read(path: str, why: str) -> str:
    """Return the sentence about a file that the disk does not read."""
    return (
        f"the disk cannot read {path} ({why}): nothing says that its content is damaged; look at "
        "the disk and the system's log, and start again"
    )
