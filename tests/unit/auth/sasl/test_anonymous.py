"""ANONYMOUS: only where the settings name a user for everybody."""

from __future__ import annotations

import pytest

from harebell.auth.sasl.exchange import Context
from harebell.auth.sasl.exchanges import begin_exchange, offers
from harebell.auth.users import User, Users


def context(anonymous: str, address: str = "10.0.0.1") -> Context:
    users = Users(bytes)
    users.put(User("guest", "", loopback_only=True))
    return Context(users, address, bytes, anonymous=anonymous)


def test_anonymous_is_off_unless_an_existing_user_is_named() -> None:
    assert "ANONYMOUS" not in offers(context(""))
    assert "ANONYMOUS" not in offers(context("nobody"))
    assert begin_exchange("ANONYMOUS", context("")) is None
    assert "ANONYMOUS" in offers(context("guest"))


@pytest.mark.parametrize(("address", "let_in"), [("127.0.0.1", True), ("10.0.0.1", False)])
def test_everybody_is_that_user_from_where_it_may_log_in(address: str, let_in: bool) -> None:
    exchange = begin_exchange("ANONYMOUS", context("guest", address))
    assert exchange is not None
    assert exchange.step(b"trace@example.org") is None
    assert (exchange.user is not None) == let_in
