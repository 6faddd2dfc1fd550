"""Stored offsets of a stream's consumers, by consumer tag; they survive restarts.

They are rows in the definitions (kind "offset"; key vhost, queue, tag; field position). They are
written from time to time, not for each acknowledgement, so after a crash a consumer may get again
the messages that it acknowledged last.
"""

from __future__ import annotations

from harebell.base.ports import Commit, Definitions
from harebell.model.limits import STREAM_TRACKED_TAGS
from harebell.model.resource import precondition, rendered

OFFSET_ROWS = "offset"
NOTHING = -1


class Tracking:
    """The tracked offsets of one stream.

    Args:
        vhost: the name of the stream's vhost.
        queue: the name of the stream.
        definitions: where they are stored.
        commit: the group commit of the store.
        offsets: the offsets from before the restart, by tag.
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
        # Number 0 means no tracking, so the first tag has number 1.
        self._tags: list[str] = ["", *(offsets or {})]
        self._offsets: list[int] = [NOTHING, *(offsets or {}).values()]
        self._numbers = {tag: number for number, tag in enumerate(self._tags) if number}
        self._changed: set[int] = set()

    def cut_at(self, end: int) -> list[str]:
        """Take back offsets of messages that the log has lost; return a log line for each.

        Others will have these offsets, and would not be delivered.

        Args:
            end: where the log ends.
        """
        lines = []
        for number, offset in enumerate(self._offsets):
            if offset >= end:
                self._offsets[number] = end - 1
                self._changed.add(number)
                lines.append(
                    f"{rendered('queue', self._queue, self._vhost)} ends at offset {end} and was "
                    f"read by consumer '{self._tags[number]}' up to {offset}: "
                    f"{offset + 1 - end} messages are lost, and it goes on at {end}"
                )
        # With the first commit: once other messages have the offsets, it would be too late.
        self.write()
        return lines

    def check(self, tag: str) -> None:
        """Refuse a new tag if the limit of tracked tags is reached."""
        if tag not in self._numbers and len(self._tags) > STREAM_TRACKED_TAGS:
            raise precondition(
                f"offsets are kept for {STREAM_TRACKED_TAGS} consumer tags, no more are possible, "
                f"in {rendered('queue', self._queue, self._vhost)}"
            )

    def number_of(self, tag: str) -> tuple[int, int]:
        """Return the number of a tag, from 1, and its last acknowledged offset, or -1."""
        number = self._numbers.get(tag)
        if number is None:
            number = len(self._tags)
            self._numbers[tag] = number
            self._tags.append(tag)
            self._offsets.append(NOTHING)
        return number, self._offsets[number]

    def offset_of(self, tag: str) -> int:
        """Return the last acknowledged offset of a tag; -1 if there is none."""
        number = self._numbers.get(tag)
        return NOTHING if number is None else self._offsets[number]

    def acknowledged(self, number: int, offset: int) -> None:
        """Note the offset that a consumer acknowledged."""
        # Acknowledgements may come in any order; the largest offset counts, as the next consumer
        # begins behind it.
        if offset > self._offsets[number]:
            self._offsets[number] = offset
            self._changed.add(number)

    def write(self) -> None:
        """Store the offsets that have changed."""
        for number in self._changed:
            key = (self._vhost, self._queue, self._tags[number])
            self._definitions.put(OFFSET_ROWS, key, {"position": self._offsets[number]})
        if self._changed:
            self._changed.clear()
            # No confirm waits for these rows, so nothing else would start the commit soon.
            self._commit.urgent = True

    def unstore(self) -> None:
        """Remove the stored offsets: the stream is deleted."""
        for number, offset in enumerate(self._offsets):
            if offset != NOTHING:
                key = (self._vhost, self._queue, self._tags[number])
                self._definitions.drop(OFFSET_ROWS, key)
