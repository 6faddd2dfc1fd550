"""channel.flow and channel.close."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World


def test_going_on_is_granted_and_stopping_refused() -> None:
    peer = World().peer()
    assert peer.ask(m.ChannelFlow(True)) == m.ChannelFlowOk(True)
    answer = peer.ask(m.ChannelFlow(False))
    assert isinstance(answer, m.ConnectionClose)
    assert answer.reply_text == "NOT_IMPLEMENTED - active=false"


@pytest.mark.parametrize("stray", [m.ChannelFlowOk(True), m.ChannelCloseOk(), m.BasicCancelOk("")])
def test_an_answer_to_what_was_never_asked_ends_the_connection(stray: m.Method) -> None:
    answer = World().peer().ask(stray)
    assert isinstance(answer, m.ConnectionClose)
    assert answer.reply_text == "COMMAND_INVALID - unimplemented method"


def test_a_closed_channel_can_be_opened_again() -> None:
    peer = World().peer()
    for _ in range(3):
        assert peer.ask(m.ChannelClose(200, "done")) == m.ChannelCloseOk()
        assert peer.ask(m.ChannelOpen()) == m.ChannelOpenOk()
