"""Properties that are checked when a message is published."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.unit.front.amqp_0_9_1.world import World, publish


@pytest.mark.parametrize("expiration", ["0", "60000", "+5", str(315_360_000_000)])
def test_a_number_of_milliseconds_is_an_expiration(expiration: str) -> None:
    peer = World().peer()
    peer.give(publish(b"", properties=BasicProperties(expiration=expiration)))
    assert peer.frames() == []


@pytest.mark.parametrize(
    ("expiration", "reason"),
    [
        ("", "no_integer"),
        ("soon", "no_integer"),
        ("5s", '{leftover_string,"s"}'),
        ("-1", "{value_negative,-1}"),
        ("315360000001", "{value_too_large,315360000001}"),
    ],
)
def test_anything_else_closes_the_channel(expiration: str, reason: str) -> None:
    peer = World().peer()
    peer.give(publish(b"", properties=BasicProperties(expiration=expiration)))
    (close,) = peer.methods()
    assert isinstance(close, m.ChannelClose)
    assert close.reply_text == (
        f"PRECONDITION_FAILED - invalid expiration '{expiration}': {reason}"
    )


def test_a_user_id_must_be_the_publishers_own() -> None:
    peer = World().peer()
    peer.give(publish(b"", properties=BasicProperties(user_id="guest")))
    assert peer.frames() == []
    peer.give(publish(b"", properties=BasicProperties(user_id="root")))
    (close,) = peer.methods()
    assert isinstance(close, m.ChannelClose)
    assert close.reply_text == (
        "PRECONDITION_FAILED - user_id property set to 'root' but authenticated user was 'guest'"
    )


def test_an_impersonator_may_name_others() -> None:
    world = World()
    world.users.add("guest", "guest", tags=("impersonator",), vhosts=("/",))
    peer = world.peer()
    peer.give(publish(b"", properties=BasicProperties(user_id="root")))
    assert peer.frames() == []
