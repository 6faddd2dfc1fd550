"""Files of a table that its log may not have yet: noted before, removed if it never gets them.

    <note>    {"batch": 17, "files": ["day=2026-01-01/part-....parquet"]}

The note is on disk before the files can be mistaken for those of the table, and is removed when the
log has them. A note that is still there when the sink writes again is of a batch that ended between
the two, such as by a crash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from harebell.pipeline.sinks import staging


class UncommittedFiles:
    """The files of one sink that are not committed.

    Args:
        note: the file with their names.
        remove: removes a file, which may not exist.
    """

    def __init__(self, note: Path, remove: Callable[[str], None]) -> None:
        self._note = note
        self._remove = remove

    def begin(self, batch: int, files: Iterable[str]) -> None:
        """Note the files, on disk."""
        staging.store(self._note, {"batch": batch, "files": list(files)})

    def end(self) -> None:
        """Forget the files: the log has them."""
        self._note.unlink(missing_ok=True)

    def settle(self, committed: int | None) -> None:
        """Remove the files of a batch that the log does not have.

        Args:
            committed: the last batch that the log has; None for none.
        """
        try:
            note = json.loads(self._note.read_text())
        except FileNotFoundError:
            return
        # The log has the batch if the answer to its commit was lost: then the files are the
        # table's.
        if committed is None or committed < int(note["batch"]):
            for name in note["files"]:
                self._remove(name)
        self.end()
