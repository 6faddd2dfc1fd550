"""Output of one connection that is written in several turns."""

from __future__ import annotations

from collections import deque

from harebell.base.body_frames import BodyFrames


class LongOutput:
    """The remaining parts of an output, in order.

    Attributes:
        left: bytes that were not taken yet.
    """

    __slots__ = ("_parts", "left")

    def __init__(self) -> None:
        self._parts: deque[memoryview | BodyFrames] = deque()
        self.left = 0

    def add(self, part: bytes | BodyFrames) -> None:
        """Append a part."""
        parts = self._parts
        if isinstance(part, BodyFrames):
            self.left += part.left
            parts.append(part)
        else:
            self.left += len(part)
            parts.append(memoryview(part))

    def take(self, byte_count: int) -> list[bytes | memoryview]:
        """Take about `byte_count` bytes of the first part; frames of a body are not split."""
        parts = self._parts
        assert parts, "the caller has looked at `left`"
        first = parts[0]
        pieces: list[bytes | memoryview]
        if isinstance(first, BodyFrames):
            before = first.left
            pieces = first.take_parts(byte_count)
            rest = first.left
        else:
            before = len(first)
            pieces = [first[:byte_count]]
            parts[0] = first[byte_count:]
            rest = max(before - byte_count, 0)
        if not rest:
            parts.popleft()
        self.left -= before - rest
        return pieces
