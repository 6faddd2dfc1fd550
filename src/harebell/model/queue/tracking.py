"""Offsets that a stream keeps for its consumers, by consumer tag, over restarts too.

They are rows in the definitions (kind "offset"; key vhost, queue, tag; field position). They are
written when some time has passed and never for each acknowledgement: after a crash a consumer may
get again what it acknowledged last.
"""

from __future__ import annotations

from harebell.base.limits import STREAM_TRACKED_TAGS
from harebell.base.ports import Commit, Definitions
from harebell.model.resource import precondition, rendered

OFFSET_ROWS = "offset"
NOTHING = -1


class Tracking:
    """The offsets of one stream.

    Args:
        vhost: the name of the stream's vhost.
        queue: its name.
        definitions: where they outlive the process.
        commit: of the store.
        offsets: those from before, by tag.
    """

    def __init__(
        self,
        vhost: str,
        queue: str,
        definitions: Definitions,
        commit: Commit,
        offsets: dict[str, int] | None = None,
    ) -> None:
        self._vhost = vhost
        self._queue = queue
        self._definitions = definitions
        self._commit = commit
        self._tags: list[str] = ["", *(offsets or {})]
        self._offsets: list[int] = [NOTHING, *(offsets or {}).values()]
        self._numbers = {tag: number for number, tag in enumerate(self._tags) if number}
        self._changed: set[int] = set()

    def check(self, tag: str) -> None:
        """Refuse a new tag when offsets are kept for too many already."""
        if tag not in self._numbers and len(self._tags) > STREAM_TRACKED_TAGS:
            raise precondition(
                f"offsets are kept for {STREAM_TRACKED_TAGS} consumer tags, no more are possible, "
                f"in {rendered('queue', self._queue, self._vhost)}"
            )

    def number_of(self, tag: str) -> tuple[int, int]:
        """The number of a tag, from 1, and the last offset acknowledged under it, or -1."""
        number = self._numbers.get(tag)
        if number is None:
            number = len(self._tags)
            self._numbers[tag] = number
            self._tags.append(tag)
            self._offsets.append(NOTHING)
        return number, self._offsets[number]

    def acknowledged(self, number: int, offset: int) -> None:
        """A consumer has acknowledged an offset."""
        if offset > self._offsets[number]:
            self._offsets[number] = offset
            self._changed.add(number)

    def write(self) -> None:
        """Write down what has changed."""
        for number in self._changed:
            key = (self._vhost, self._queue, self._tags[number])
            self._definitions.put(OFFSET_ROWS, key, {"position": self._offsets[number]})
        if self._changed:
            self._changed.clear()
            self._commit.urgent = True

    def forget(self) -> None:
        """The stream is gone."""
        for number, offset in enumerate(self._offsets):
            if offset != NOTHING:
                key = (self._vhost, self._queue, self._tags[number])
                self._definitions.drop(OFFSET_ROWS, key)
        self._changed.clear()
