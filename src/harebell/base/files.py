"""Write to files that may take less than they are given."""

from __future__ import annotations

import errno

from harebell.base.ports import File


def write_all(file: File, data: bytes | memoryview, offset: int) -> None:
    """Write all bytes at an offset, in as many calls as necessary.

    Raises:
        OSError: the disk refuses; ENOSPC also when nothing at all could be written.
    """
    rest = memoryview(data)
    while rest:
        done = file.write_at(rest, offset)
        # Would loop forever: nothing was written, and there is no error.
        if done <= 0:
            raise OSError(errno.ENOSPC, "nothing could be written")
        rest = rest[done:]
        offset += done
