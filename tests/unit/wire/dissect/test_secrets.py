"""Nothing that proves who somebody is stands in an event."""

from __future__ import annotations

import pytest

from harebell.wire.dissect import event as kinds
from harebell.wire.dissect.event import masked
from harebell.wire.v09 import methods
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from tests.unit.wire.dissect.talk import HEADER, SECRET, START_OK, fed, frame, framed


@pytest.mark.parametrize(
    "method",
    [
        START_OK,
        methods.ConnectionSecure(challenge=SECRET),
        methods.ConnectionSecureOk(response=SECRET),
        methods.ConnectionUpdateSecret(new_secret=SECRET, reason="it is time"),
    ],
)
def test_no_secret_is_in_an_event(method: methods.Method) -> None:
    (event,) = fed(HEADER + frame(method))[1:]
    assert event.kind == kinds.METHOD
    assert b"secret indeed" not in event.raw
    assert "secret indeed" not in repr(event)


def test_credentials_that_cannot_be_read_are_not_shown_either() -> None:
    broken = framed(1, 0, AMQP_0_9_1.encode(START_OK)[:-3])
    (event,) = fed(HEADER + broken)[1:]
    assert event.kind == kinds.UNREADABLE
    assert "secret indeed" not in repr(event)


def test_everything_else_is_left_as_it_is() -> None:
    fields = {"response": "not of a handshake"}
    assert masked("queue.declare", fields, b"frame") == (fields, b"frame")


def test_a_secret_is_masked_wherever_it_stands_in_the_frame() -> None:
    fields, raw = masked("connection.secure-ok", {"response": b"abc"}, b"..abc..abc")
    assert fields == {"response": "*** (3 octets)"}
    assert raw == b"..***..***"
