"""Sessions of AMQP 0-10: attaching, numbering, completing, coming back."""

from __future__ import annotations

from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from tests.conformance.v010.raw import Peer010


def test_a_synchronous_command_is_told_complete(peer010: Peer010) -> None:
    peer010.send(c.ExecutionSync(), sync=True)
    peer010.expect(k.SessionCompleted, commands=((0, 0),))
    peer010.close()
