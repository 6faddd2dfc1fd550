"""The frames of a session that its client has not acknowledged, for replay when it resumes.

Frames of a session are numbered from 1 in either direction, in 32 bits and around again; those of
the class session are not counted, for they speak of the others.

    sent   1 2 3 4 5 6 7        session.ack(3) comes: 4 to 7 are kept
                   kept >|
"""

from __future__ import annotations

from collections import deque

from harebell.base.limits import SESSION_REPLAY_BYTES
from harebell.front.amqp_0_10_transitional.completion import after, distance

_OVERHEAD = 8
_HEAD = 7


def split(octets: bytes) -> list[bytes]:
    """The frames that stand one after the other in some octets."""
    frames, at = [], 0
    while at < len(octets):
        end = at + _OVERHEAD + int.from_bytes(octets[at + 3 : at + _HEAD])
        frames.append(octets[at:end])
        at = end
    return frames


class Replay:
    """The sent frames of one session.

    Attributes:
        sent: the number of the last frame; 0 before the first.
        acked: the number of the last frame that its client has.
        octets: what is kept.
        solicited: the client was asked, and has not answered yet.
    """

    __slots__ = ("_frames", "acked", "octets", "sent", "solicited")

    def __init__(self) -> None:
        self.sent = 0
        self.acked = 0
        self.octets = 0
        self.solicited = False
        self._frames: deque[bytes] = deque()

    def keep(self, frames: list[bytes]) -> None:
        """Frames are sent."""
        for frame in frames:
            self._frames.append(frame)
            self.octets += len(frame)
        self.sent = after(self.sent, len(frames))

    def ack(self, mark: int) -> bool:
        """The client has all frames up to this number; False when it cannot have them."""
        new = distance(self.acked, mark)
        if new < 0:
            return True
        if new > len(self._frames):
            return False
        for _ in range(new):
            self.octets -= len(self._frames.popleft())
        self.acked = mark
        self.solicited = False
        return True

    @property
    def full(self) -> bool:
        """Whether deliveries have to wait until the client has some of it."""
        return self.octets >= SESSION_REPLAY_BYTES

    @property
    def half_full(self) -> bool:
        """Whether session.solicit-ack is due."""
        return self.octets >= SESSION_REPLAY_BYTES // 2

    def again(self, number: int) -> list[bytes]:
        """The frames to replay on the channel of this number."""
        channel = number.to_bytes(2)
        return [frame[:1] + channel + frame[3:] for frame in self._frames]
