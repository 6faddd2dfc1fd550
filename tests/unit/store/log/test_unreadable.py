"""A disk that fails to read is told from all else that a system refuses."""

from __future__ import annotations

import errno

import pytest

from harebell.base.errors import DiskError
from harebell.store.log.unreadable import refused


@pytest.mark.parametrize("number", [errno.EIO, errno.EBADMSG, errno.ESTALE])
def test_an_error_of_the_disk_names_the_file_and_what_the_system_said(number: int) -> None:
    error = refused("cannot open it", OSError(number, "no such luck at byte 7", "/data/file"))
    assert isinstance(error, DiskError)
    assert str(error).startswith("the disk cannot read /data/file (no such luck at byte 7): ")


def test_a_refusal_of_the_system_is_no_error_of_the_disk() -> None:
    error = refused("cannot open it", OSError(errno.EACCES, "Permission denied", "/data/file"))
    assert not isinstance(error, DiskError)
    assert str(error) == "cannot open it: [Errno 13] Permission denied: '/data/file'"
