"""CRAM-MD5: who answers the challenge, and who cannot."""

from __future__ import annotations

import hmac

import pytest

from harebell.auth.sasl.exchange import Context, Exchange, SaslError
from harebell.auth.sasl.exchanges import begin_exchange, offers
from harebell.auth.users import User, Users

ALLOWED = ("CRAM-MD5", "PLAIN")


def context(address: str = "10.0.0.1", *, allowed: tuple[str, ...] = ALLOWED) -> Context:
    users = Users(lambda size: b"r" * size, cram=True)
    users.add("ann b", "s3cret")
    users.add("local", "s3cret", loopback_only=True)
    users.put(User("hashed", "AAAA"))
    return Context(users, address, lambda size: b"n" * size, allowed=allowed)


def asked(found: Context | None = None) -> tuple[Exchange, bytes]:
    exchange = begin_exchange("CRAM-MD5", found or context())
    assert exchange is not None
    challenge = exchange.step(b"")
    assert challenge is not None
    return exchange, challenge


def answer(user: str, password: str, challenge: bytes) -> bytes:
    return f"{user} {hmac.new(password.encode(), challenge, 'md5').hexdigest()}".encode()


def test_the_right_password_logs_in() -> None:
    exchange, challenge = asked()
    assert challenge == b"<" + b"6e" * 12 + b"@harebell>"
    assert exchange.step(answer("ann b", "s3cret", challenge)) is None
    assert exchange.user is not None
    assert exchange.user.name == exchange.name == "ann b"


@pytest.mark.parametrize(
    ("user", "password"), [("ann b", "wrong"), ("nobody", "s3cret"), ("hashed", "s3cret")]
)
def test_a_wrong_password_does_not_log_in(user: str, password: str) -> None:
    exchange, challenge = asked()
    assert exchange.step(answer(user, password, challenge)) is None
    assert exchange.user is None
    assert exchange.name == user


def test_a_user_of_this_machine_gets_in_from_here_only() -> None:
    for address, let_in in (("10.0.0.1", False), ("127.0.0.1", True)):
        exchange, challenge = asked(context(address))
        exchange.step(answer("local", "s3cret", challenge))
        assert (exchange.user is not None) == let_in


def test_the_server_speaks_first() -> None:
    exchange = begin_exchange("CRAM-MD5", context())
    assert exchange is not None
    with pytest.raises(SaslError, match="begins with an empty response"):
        exchange.step(b"ann")


@pytest.mark.parametrize("response", [b"", b"ann", b"\xff 00"])
def test_an_answer_that_is_none_is_refused(response: bytes) -> None:
    exchange, _ = asked()
    with pytest.raises(SaslError, match="a CRAM-MD5 answer is"):
        exchange.step(response)
    assert exchange.user is None


def test_the_mechanism_is_not_offered_unless_it_is_named() -> None:
    assert "CRAM-MD5" not in offers(context(allowed=()))
    assert "CRAM-MD5" in offers(context())


def test_the_mechanism_is_not_offered_without_a_password_set_for_it() -> None:
    users = Users(bytes)
    users.add("ann", "secret")
    assert offers(Context(users, "", bytes, allowed=ALLOWED)) == ["PLAIN"]


def test_passwords_leave_nothing_for_it_unless_they_shall() -> None:
    users = Users(bytes)
    user = users.add("ann", "secret")
    assert user.cram == b""
    users.cram = True
    users.give(user, users.derived("secret"))
    assert user.cram
    users.cram = False
    users.give(user, users.derived("secret"))
    assert user.cram == b""
