"""Which of an argument and a policy holds."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.model.settings.queue_settings import settings_of

QUORUM = {"x-queue-type": "quorum"}
STREAM = {"x-queue-type": "stream"}


@pytest.mark.parametrize(
    ("arguments", "policies", "settings"),
    [
        ({}, {}, {}),
        ({"x-max-length": 3}, {}, {"max-length": 3}),
        ({}, {"max-length": 3}, {"max-length": 3}),
        ({"x-max-length": 3}, {"max-length": 2, "expires": 9}, {"max-length": 2, "expires": 9}),
        ({"x-max-length": 2}, {"max-length": 3}, {"max-length": 2}),
        ({"x-message-ttl": 0}, {"message-ttl": 3}, {"message-ttl": 0}),
        ({"x-consumer-timeout": 8}, {"consumer-timeout": 7}, {"consumer-timeout": 7}),
        ({"x-overflow": "drop-head"}, {"overflow": "reject-publish"}, {"overflow": "drop-head"}),
        (
            QUORUM | {"x-overflow": "drop-head"},
            {"overflow": "reject-publish"},
            {"overflow": "reject-publish"},
        ),
        (QUORUM | {"x-delivery-limit": -1}, {"delivery-limit": 4}, {"delivery-limit": 4}),
        (QUORUM | {"x-delivery-limit": 3}, {"delivery-limit": 4}, {"delivery-limit": 3}),
        (QUORUM | {"x-delivery-limit": 3}, {"delivery-limit": -1}, {"delivery-limit": 3}),
        (
            {"x-dead-letter-exchange": "mine"},
            {"dead-letter-exchange": "theirs", "dead-letter-routing-key": "k"},
            {"dead-letter-exchange": "mine", "dead-letter-routing-key": "k"},
        ),
        (STREAM | {"x-max-age": "1h"}, {"max-age": "2D"}, {"max-age": "2D"}),
        (STREAM | {"x-max-length-bytes": 1}, {"max-length-bytes": 2}, {"max-length-bytes": 2}),
        (STREAM | {"x-max-length-bytes": 1}, {}, {"max-length-bytes": 1}),
    ],
)
def test_arguments_and_policies_give_the_settings_that_they_give_with_rabbitmq(
    arguments: dict[str, Any], policies: dict[str, Any], settings: dict[str, Any]
) -> None:
    assert settings_of(arguments, policies) == settings


def test_settings_that_are_not_of_policies_are_left_out() -> None:
    given = {"x-max-priority": 3, "max-length": 2, "x-mine": 1, "x-queue-type": "quorum"}
    assert settings_of(given, {}) == {}
