"""Standard output, whose errors end every verb with one sentence."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harebell.cli.verb import FAILED, echo


class _Raw(io.FileIO):
    """Writes to a file descriptor, and remembers the error that a write had."""

    error: OSError | None = None

    def write(self, data: object) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            self.error = error
            raise


@contextmanager
def guarded() -> Iterator[None]:
    """End the process with one sentence if its output cannot be written, as on a full disk.

    A reader of a pipe that has gone, as `head` does, ends it without one. Other errors pass.
    """
    before: Any = sys.stdout
    try:
        number = before.fileno()
    except (AttributeError, OSError, ValueError):
        yield  # it is closed, or is no file
        return
    raw = _Raw(number, "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=bool(before.line_buffering),
        write_through=before.write_through,
    )
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error is not raw.error:
            raise
        # The rest would fail too when Python flushes it at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        if error.errno != errno.EPIPE:
            echo(f"Error: cannot write the output: {error.strerror}", err=True)
        sys.exit(FAILED)
