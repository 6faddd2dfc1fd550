"""The part of a channel that its connection knows."""

from __future__ import annotations

import pytest

from harebell.base.message import Properties
from harebell.front.amqp_0_9_1.channel_port import ChannelPort
from tests.unit.front.amqp_0_9_1.world import World


def test_a_channel_has_to_fill_both_calls() -> None:
    port = ChannelPort(3)
    assert (port.number, port.content) == (3, None)
    with pytest.raises(NotImplementedError):
        port.publish(0, "", "", Properties(b"\0\0"), b"")
    with pytest.raises(NotImplementedError):
        port.ack(1, False)


def test_channels_are_such_ports() -> None:
    assert isinstance(World().peer().connection.channels[1], ChannelPort)
