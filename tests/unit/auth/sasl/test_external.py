"""EXTERNAL: the name in the certificate is the user."""

from __future__ import annotations

import pytest

from harebell.auth.sasl.exchange import Context
from harebell.auth.sasl.exchanges import begin_exchange, offers
from harebell.auth.users import User, Users


def context(certificate: str, address: str = "10.0.0.1") -> Context:
    users = Users(bytes)
    users.put(User("CN=ann", ""))
    users.put(User("CN=local", "", loopback_only=True))
    return Context(users, address, bytes, certificate=certificate)


@pytest.mark.parametrize(
    ("certificate", "address", "user"),
    [
        ("CN=ann", "10.0.0.1", "CN=ann"),
        ("CN=bob", "10.0.0.1", None),
        ("CN=local", "10.0.0.1", None),
        ("CN=local", "::1", "CN=local"),
    ],
)
def test_the_certificate_says_who_it_is(certificate: str, address: str, user: str | None) -> None:
    exchange = begin_exchange("EXTERNAL", context(certificate, address))
    assert exchange is not None
    assert exchange.step(b"somebody else") is None
    assert (exchange.user.name if exchange.user else None) == user
    assert exchange.name == certificate


def test_without_a_certificate_it_is_not_offered() -> None:
    assert "EXTERNAL" in offers(context("CN=bob"))
    assert "EXTERNAL" not in offers(context(""))
    assert begin_exchange("EXTERNAL", context("")) is None
