"""SASL PLAIN: two zero octets, no more and no less."""

from __future__ import annotations

import pytest

from harebell.auth.sasl import Credentials, SaslError
from harebell.auth.sasl.plain import Plain


def plain(response: bytes) -> Credentials:
    def no_table(data: bytes) -> dict[str, object]:
        raise AssertionError(f"PLAIN has no table: {data!r}")

    return Plain(no_table).credentials(response)


@pytest.mark.parametrize("identity", [b"", "usér".encode()])
def test_user_and_password_stand_after_the_identity(identity: bytes) -> None:
    found = plain(identity + b"\0us\xc3\xa9r\0p w")
    assert found == Credentials("usér", "p w")


def test_an_empty_password_is_a_password() -> None:
    assert plain(b"\0user\0") == Credentials("user", "")


@pytest.mark.parametrize("response", [b"", b"user", b"\0user", b"\0user\0pass\0more"])
def test_another_number_of_parts_is_refused(response: bytes) -> None:
    with pytest.raises(SaslError, match="<identity> NUL <user> NUL <password>"):
        plain(response)


def test_octets_that_are_no_utf8_are_refused_and_not_repeated() -> None:
    with pytest.raises(SaslError, match="a PLAIN response is UTF-8") as refused:
        plain(b"\0user\0s3cret\xff")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("identity", [b"admin", b"user ", b"\xff"])
def test_a_login_for_another_user_is_refused(identity: bytes) -> None:
    with pytest.raises(SaslError, match="leave the authorization identity empty"):
        plain(identity + b"\0user\0pass")
