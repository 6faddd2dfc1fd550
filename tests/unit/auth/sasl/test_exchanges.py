"""The exchange of SASL mechanisms: who is offered what, and who gets in."""

from __future__ import annotations

import pytest

from harebell.auth.sasl.exchange import Context, SaslError
from harebell.auth.sasl.exchanges import begin_exchange, offers
from harebell.auth.users import Users


def context(address: str = "127.0.0.1") -> Context:
    users = Users(bytes)
    users.add("ann", "secret")
    users.add("local", "secret", loopback_only=True)
    return Context(users, address, bytes)


def test_plain_is_offered_to_everybody() -> None:
    assert "PLAIN" in offers(context())


def test_an_unknown_mechanism_has_no_exchange() -> None:
    assert begin_exchange("GSSAPI", context()) is None


@pytest.mark.parametrize(
    ("response", "address", "user"),
    [
        (b"\0ann\0secret", "10.0.0.1", "ann"),
        (b"other\0ann\0secret", "10.0.0.1", "ann"),
        (b"\0ann\0wrong", "10.0.0.1", None),
        (b"\0nobody\0secret", "10.0.0.1", None),
        (b"\0local\0secret", "10.0.0.1", None),
        (b"\0local\0secret", "127.0.0.1", "local"),
    ],
)
def test_plain_lets_in_who_knows_the_password(
    response: bytes, address: str, user: str | None
) -> None:
    exchange = begin_exchange("PLAIN", context(address))
    assert exchange is not None
    assert exchange.step(response) is None
    assert (exchange.user.name if exchange.user else None) == user
    assert exchange.name == response.split(b"\0")[1].decode()


def test_a_response_that_is_none_of_plain_is_refused() -> None:
    exchange = begin_exchange("PLAIN", context())
    assert exchange is not None
    with pytest.raises(SaslError, match="a PLAIN response is"):
        exchange.step(b"ann")
    assert exchange.user is None
