"""Which table a sink has written to, stored in the checkpoint of its query.

    <checkpoint>/tables/<key of the sink>.json    {"table": "<identity>"}

A checkpoint counts the micro-batches that are in a table. If the table is gone, or another one is
in its place, the query must not go on with the next micro-batch as if the earlier ones were there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from harebell.pipeline.errors import PipelineError

_DIRECTORY = "tables"


class KnownTable:
    """The table of one sink of one query.

    Args:
        checkpoint: directory of the query's checkpoint.
        key: of the sink.
    """

    def __init__(self, checkpoint: Path, key: str) -> None:
        self._file = checkpoint / _DIRECTORY / f"{key}.json"
        self._stored: str | None = None

    def check(self, identity: str | None, what: str) -> None:
        """Compare the table that is there with the one that was written to.

        Args:
            identity: of the table; None if there is none.
            what: its kind and name, for the error.

        Raises:
            PipelineError: it is gone, or it is another table.
        """
        known = self._stored or self._read()
        if known is None or known == identity:
            return
        state = "is gone" if identity is None else "is another table than before"
        raise PipelineError(
            f"the {what} {state}, and this checkpoint counts what was written to it: restore the "
            f"table, or remove {self._file} to begin a new one with the next micro-batch"
        )

    def store(self, identity: str) -> None:
        """Store the table's identity; it is on disk when this returns."""
        if self._stored == identity:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        with fresh.open("w") as file:
            json.dump({"table": identity}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._file)
        self._stored = identity

    def _read(self) -> str | None:
        try:
            self._stored = str(json.loads(self._file.read_text())["table"])
        except FileNotFoundError:
            return None
        return self._stored
