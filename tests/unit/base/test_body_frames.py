"""Bodies that are framed as their peer reads them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from harebell.base.body_frames import BodyFrames, ScatteredFrames, SegmentFrames, encoded

BODY = bytes(range(256)) * 4


def in_pieces(frames: BodyFrames, octets: int) -> list[bytes]:
    found = []
    while frames.left:
        before = frames.left
        found.append(frames.take(octets))
        assert before - frames.left == len(found[-1])
    return found


def test_every_frame_has_its_head_and_its_end() -> None:
    frames = BodyFrames(7, b"abcdefgh", 3)
    assert frames.left == 8 + 3 * 8
    assert frames.take(1_000) == (
        b"\x03\0\x07\0\0\0\x03abc\xce\x03\0\x07\0\0\0\x03def\xce\x03\0\x07\0\0\0\x02gh\xce"
    )
    assert (frames.left, frames.take(1_000)) == (0, b"")


def test_the_first_and_the_last_frame_of_a_segment_say_so() -> None:
    taken = SegmentFrames(7, b"abcdefgh", 3).take(1_000)
    head = b"\x03\0%c\0\x01\0\x07\0\0\0\0"
    first, middle, last = (bytes((flags,)) + head for flags in (6, 4, 5))
    assert taken == first % 15 + b"abc" + middle % 15 + b"def" + last % 14 + b"gh"
    assert SegmentFrames(7, b"abc", 3).take(9)[0] == 7


@pytest.mark.parametrize("kind", [BodyFrames, SegmentFrames])
@pytest.mark.parametrize("octets", [1, 100, 129, 300, 10_000])
def test_pieces_are_whole_frames_and_add_up(kind: type[BodyFrames], octets: int) -> None:
    whole = kind(3, BODY, 100).take(100_000)
    pieces = in_pieces(kind(3, BODY, 100), octets)
    assert b"".join(pieces) == whole
    assert all(len(piece) <= max(octets, 100 + kind.OVERHEAD) for piece in pieces)


def test_parts_of_an_output_become_one() -> None:
    assert encoded([b"a", BodyFrames(1, b"xy", 9), b"b"]) == b"a\x03\0\x01\0\0\0\x02xy\xceb"
    assert encoded([]) == b""


@pytest.mark.parametrize("octets", [1, 100, 129, 300, 10_000])
def test_a_body_in_several_places_has_the_frames_of_one_in_one_place(octets: int) -> None:
    cuts = [0, 1, 1, 90, 250, 251, len(BODY)]
    parts = [BODY[first:end] for first, end in pairwise(cuts)]
    scattered, whole = ScatteredFrames(3, parts, 100), BodyFrames(3, BODY, 100)
    assert scattered.left == whole.left
    assert in_pieces(scattered, octets) == in_pieces(whole, octets)
