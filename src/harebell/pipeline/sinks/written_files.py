"""Know which files pyiceberg writes, to remove all of them when the store refuses one.

pyiceberg writes the files of a batch in several threads, and tells their names only when all are
written. Where one fails, the others stay behind, and some may still be in work.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.01


class WrittenFiles:
    """The files that are written through the `FileIO` of a table.

    Args:
        io: of the table; the other methods are its own.
    """

    def __init__(self, io: Any) -> None:
        self._io = io
        self._guard = threading.Lock()
        self._files: list[tuple[str, Any]] = []
        self._over = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._io, name)

    def new_output(self, location: str) -> Any:
        """Return the file of a location, which is noted when it is created."""
        return _Output(self._io.new_output(location), self)

    def created(self, output: Any, *, overwrite: bool) -> Any:
        """Create a file and note it.

        Args:
            output: the file, as pyiceberg knows it.
            overwrite: whether another one may be there.

        Returns:
            The open file.

        Raises:
            OSError: the files are removed already.
        """
        with self._guard:
            if self._over:
                raise OSError(f"{output.location} is not written: a file of its batch failed")
            stream = output.create(overwrite=overwrite)
            self._files.append((output.location, stream))
            return stream

    def remove(self) -> None:
        """Remove what was written, once nothing is in work any more. Errors are passed over."""
        with self._guard:
            self._over = True
        give_up = time.monotonic() + _PATIENCE_SECONDS
        for path, stream in self._files:
            while not stream.closed and time.monotonic() < give_up:
                time.sleep(_LOOK_SECONDS)
            with contextlib.suppress(Exception):
                self._io.delete(path)


class _Output:
    """A file that may be created; the other attributes are those of pyiceberg's."""

    def __init__(self, output: Any, files: WrittenFiles) -> None:
        self._output = output
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)

    def __len__(self) -> int:
        return len(self._output)

    def create(self, overwrite: bool = False) -> Any:
        """Create the file."""
        return self._files.created(self._output, overwrite=overwrite)
