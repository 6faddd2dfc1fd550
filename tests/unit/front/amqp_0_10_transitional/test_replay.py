"""Frames that are kept until the client has them."""

from __future__ import annotations

from harebell.front.amqp_0_10_transitional.completion import SERIALS
from harebell.front.amqp_0_10_transitional.replay import Replay, split
from harebell.front.limits import SESSION_REPLAY_BYTES
from tests.conformance.frames import BODY, METHOD, frame

FRAMES = [frame(METHOD, 1, b"one"), frame(BODY, 1, b""), frame(METHOD, 1, b"three")]


def test_octets_are_cut_into_their_frames():
    assert split(b"".join(FRAMES)) == FRAMES
    assert split(b"") == []


def test_commands_that_the_client_has_are_forgotten():
    replay = Replay()
    replay.keep(FRAMES)
    assert (replay.sent, replay.byte_count) == (3, sum(map(len, FRAMES)))
    assert replay.ack(2)
    assert replay.again(1) == FRAMES[2:]
    assert replay.byte_count == len(FRAMES[2])


def test_an_older_mark_changes_nothing():
    replay = Replay()
    replay.keep(FRAMES)
    assert replay.ack(2)
    assert replay.ack(1)
    assert replay.acked == 2


def test_frames_that_were_not_sent_cannot_be_there():
    replay = Replay()
    replay.keep(FRAMES)
    assert not replay.ack(4)
    assert replay.again(1) == FRAMES


def test_frames_are_sent_again_on_the_channel_of_the_resume():
    replay = Replay()
    replay.keep(FRAMES)
    assert replay.again(7)[0] == frame(METHOD, 7, b"one")


def test_numbers_come_around():
    replay = Replay()
    replay.sent = replay.acked = SERIALS - 1
    replay.keep(FRAMES)
    assert replay.sent == 2
    assert replay.ack(1)
    assert replay.again(1) == FRAMES[2:]


def test_the_replay_buffer_is_full_at_its_limit():
    replay = Replay()
    piece = frame(BODY, 1, bytes(SESSION_REPLAY_BYTES // 4))
    replay.keep([piece, piece])
    assert replay.half_full
    assert not replay.full
    replay.keep([piece, piece])
    assert replay.full
    replay.ack(4)
    assert not replay.half_full
