"""The front's settings have the project's limits as defaults."""

from __future__ import annotations

from harebell.base import limits
from harebell.front import limits as front_limits
from harebell.front.common.settings import Settings


def test_defaults_are_the_limits_and_the_log_is_silent() -> None:
    settings = Settings(rng=lambda size: bytes(size))
    assert settings.frame_max == limits.FRAME_MAX_BYTES
    assert settings.channel_max == limits.CHANNEL_MAX
    assert settings.heartbeat == front_limits.HEARTBEAT_SECONDS
    assert settings.message_max == front_limits.MESSAGE_MAX_BYTES
    assert settings.log("error", "nobody hears this") is None  # type: ignore[func-returns-value]
