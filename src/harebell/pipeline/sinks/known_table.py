"""Which table a sink has written to, stored in the checkpoint of its query.

    <checkpoint>/tables/<key of the sink>.json
        {"table": "<identity>", "place": "<its name>", "batch": <the last micro-batch in it>}

A checkpoint counts the micro-batches that are in a table. If the table is gone, or another one or
an older copy is in its place, the query must not go on with the next micro-batch as if the earlier
ones were there. The file is written after the table, so it never counts more than the table has.
"""

from __future__ import annotations

import json
from pathlib import Path

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks import staging

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
        self._place: str | None = None
        self._batch = -1

    def check(self, identity: str | None, what: str, last: int | None) -> None:
        """Compare the table that is there with the one that was written to.

        Args:
            identity: of the table; None if there is none.
            what: its kind and name, for the error.
            last: the last micro-batch of the sink that it has; None for none.

        Raises:
            PipelineError: it is gone, it is another table, or an older copy.
        """
        stored = self._stored or self._read()
        if stored is None:
            return
        if stored == identity:
            self._check_age(what, -1 if last is None else last)
            return
        # The sink names another place than before: the table may still be at the old one.
        if self._place not in (None, what):
            raise PipelineError(
                f"there is {'no' if identity is None else 'another'} table at the {what}, and this "
                f"checkpoint has written to the {self._place}: name that one in the sink again, "
                f"move the table to the new place, or remove {self._file} to begin a new one with "
                "the next micro-batch"
            )
        state = "is gone" if identity is None else "is another table than before"
        raise PipelineError(
            f"the {what} {state}, and this checkpoint counts what was written to it: restore the "
            f"table, or remove {self._file} to begin a new one with the next micro-batch"
        )

    def _check_age(self, what: str, last: int) -> None:
        # Later than the file says: a crash between the commit and the file.
        if last >= self._batch:
            return
        has = f"its last micro-batch is {last}" if last >= 0 else "it has no micro-batch"
        raise PipelineError(
            f"the {what} is older than this checkpoint: {has}, and the checkpoint counts what was "
            f"written to it up to micro-batch {self._batch}. Restore a newer copy of it, or a "
            f"checkpoint of the same date, or remove {self._file} to go on without these rows"
        )

    def store(self, identity: str, what: str, batch: int) -> None:
        """Store the table's identity, kind, name and last micro-batch, durably."""
        if (self._stored, self._place, self._batch) == (identity, what, batch):
            return
        staging.store(self._file, {"table": identity, "place": what, "batch": batch})
        self._stored, self._place, self._batch = identity, what, batch

    def _read(self) -> str | None:
        try:
            stored = json.loads(self._file.read_text())
        except FileNotFoundError:
            return None
        # Earlier versions have not stored the place and the batch.
        self._stored, self._place = str(stored["table"]), stored.get("place")
        self._batch = int(stored.get("batch", -1))
        return self._stored
