"""The frames of a session that its client has not acknowledged, for replay when it resumes.

Frames of a session are numbered from 1 in each direction, in 32 bits with wrap-around; those of
class session are not counted, because they refer to the others.

    sent   1 2 3 4 5 6 7        session.ack(3) comes: 4 to 7 are kept
                   kept >|
"""

from __future__ import annotations

from collections import deque

from harebell.front.amqp_0_10_transitional.completion import after, distance
from harebell.front.limits import SESSION_REPLAY_BYTES

_OVERHEAD = 8
_HEAD = 7


def split(data: bytes) -> list[bytes]:
    """Split bytes into frames."""
    frames, begin = [], 0
    while begin < len(data):
        end = begin + _OVERHEAD + int.from_bytes(data[begin + 3 : begin + _HEAD])
        frames.append(data[begin:end])
        begin = end
    return frames


class Replay:
    """The sent frames of one session.

    Attributes:
        sent: the number of the last frame; 0 before the first.
        acked: the number of the last frame that its client has.
        byte_count: the kept bytes.
        solicited: whether session.solicit-ack was sent and is not answered yet.
    """

    __slots__ = ("_frames", "acked", "byte_count", "sent", "solicited")

    def __init__(self) -> None:
        self.sent = 0
        self.acked = 0
        self.byte_count = 0
        self.solicited = False
        self._frames: deque[bytes] = deque()

    def keep(self, frames: list[bytes]) -> None:
        """Keep frames that are sent."""
        for frame in frames:
            self._frames.append(frame)
            self.byte_count += len(frame)
        self.sent = after(self.sent, len(frames))

    def ack(self, mark: int) -> bool:
        """Drop frames up to this number, which the client has; False for an invalid number."""
        new = distance(self.acked, mark)
        if new < 0:
            # Acknowledged already: clients repeat their mark.
            return True
        if new > len(self._frames):
            return False
        for _ in range(new):
            self.byte_count -= len(self._frames.popleft())
        self.acked = mark
        self.solicited = False
        return True

    @property
    def full(self) -> bool:
        """True if deliveries wait until the client acknowledges frames."""
        return self.byte_count >= SESSION_REPLAY_BYTES

    @property
    def half_full(self) -> bool:
        """True if session.solicit-ack is due."""
        return self.byte_count >= SESSION_REPLAY_BYTES // 2

    def again(self, number: int) -> list[bytes]:
        """Return the frames to replay, with this channel number."""
        # The channel number is the second and third octet of a frame; a resume may change it.
        channel = number.to_bytes(2)
        return [frame[:1] + channel + frame[3:] for frame in self._frames]
