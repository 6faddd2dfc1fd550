"""What the configuration says of new passwords and new vhosts."""

from __future__ import annotations

import pytest

from harebell.config import Config
from harebell.config.values import pattern
from harebell.server.new_vhosts import complaint_of


@pytest.mark.parametrize(("password", "good"), [("ab-cd", True), ("a" * 254 + "!", False)])
def test_no_password_keeps_the_broker_busy_with_the_pattern_for_passwords(
    password: str, good: bool
) -> None:
    config = Config(credential_validator="regexp", credential_validator_regexp="^([a-z]+-?)+$")
    assert (complaint_of(config, "ann", password) == "") is good


@pytest.mark.parametrize("value", ["(", "(?:x++|y)*z", "(x?)" * 1_000, 7])
def test_a_pattern_of_the_configuration_is_refused_if_it_is_wrong_or_costs_too_much(
    value: object,
) -> None:
    with pytest.raises(ValueError, match="must be a regular expression"):
        pattern(value)
    assert pattern("^[[:alpha:]]+$") == "^[[:alpha:]]+$"
