"""The commands that a session may have to replay on another channel.

Only a session with a timeout keeps them, until the peer confirms their arrival.
"""

from __future__ import annotations

from harebell.base.message import Message
from harebell.kernels.transfers import SegmentBuffer

_COST = 64
"""Bytes that an entry takes beside what it holds."""
_Entry = tuple[int, bytes, bool, Message | None, bytes, bytes]


class Replay:
    """The broker's commands that the peer has not confirmed, by number.

    Attributes:
        byte_count: their approximate size.
    """

    __slots__ = ("_entries", "byte_count")

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self.byte_count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def transfer(self, number: int, command: bytes, redelivered: bool, message: Message) -> None:
        """Keep a delivery."""
        self._entries[number] = (number, command, redelivered, message, b"", b"")
        self.byte_count += len(message.body) + len(message.raw) + _COST

    def content(self, number: int, command: bytes, header: bytes, body: bytes) -> None:
        """Keep any other command."""
        self._entries[number] = (number, command, False, None, header, body)
        self.byte_count += len(command) + len(header) + len(body) + _COST

    def drop(self, first: int, last: int) -> None:
        """Drop commands that the peer has confirmed."""
        # A peer chooses the range: the work grows with the kept commands, and not with the range.
        if last - first > len(self._entries):
            confirmed = [number for number in self._entries if first <= number <= last]
        else:
            confirmed = [number for number in range(first, last + 1) if number in self._entries]
        for number in confirmed:
            _, command, _, message, header, body = self._entries.pop(number)
            if message is not None:
                self.byte_count -= len(message.body) + len(message.raw) + _COST
            else:
                self.byte_count -= len(command) + len(header) + len(body) + _COST

    def first(self, otherwise: int) -> int:
        """Return the lowest number that is kept."""
        return min(self._entries, default=otherwise)

    def numbers(self) -> list[int]:
        """Return the numbers that are kept, in order."""
        return sorted(self._entries)

    def write(self, number: int, channel: int, out: SegmentBuffer, frame_max: int) -> None:
        """Write a kept command again."""
        _, command, redelivered, message, header, body = self._entries[number]
        if message is not None:
            out.transfer(channel, command, redelivered, message, frame_max)
        else:
            out.assembly(channel, command, header, body, frame_max)
