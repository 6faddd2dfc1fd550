"""Output that a socket takes in several turns."""

from __future__ import annotations

from harebell.base.body_frames import BodyFrames
from harebell.server.net.long_output import LongOutput


def test_parts_are_taken_in_order_and_in_pieces() -> None:
    body = b"b" * 1_000
    output = LongOutput()
    output.add(b"a" * 250)
    output.add(BodyFrames(1, body, 92))
    output.add(b"c")
    left = output.left
    assert left == 250 + BodyFrames(1, body, 92).left + 1
    pieces = []
    while output.left:
        pieces.append(b"".join(output.take(100)))
        left -= len(pieces[-1])
        assert output.left == left
    assert max(map(len, pieces)) == 100
    assert b"".join(pieces) == b"a" * 250 + BodyFrames(1, body, 92).take(10_000) + b"c"
