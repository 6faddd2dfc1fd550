"""Password hashes in RabbitMQ's form."""

from __future__ import annotations

import base64

import pytest

from harebell.auth.passwords import MD5, SALT_BYTES, SHA256, SHA512, hashed, matches

SALT = b"\x90\x8d\xc6\x0a"


def test_the_worked_example_of_rabbitmqs_documentation_comes_out_the_same() -> None:
    # "Computing passwords" gives salt, password "test12" and this result.
    assert hashed("test12", SALT) == "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"


@pytest.mark.parametrize("algorithm", [SHA256, SHA512, MD5])
def test_only_the_right_password_matches(algorithm: str) -> None:
    stored = hashed("pässword", SALT, algorithm)
    assert matches("pässword", stored, algorithm)
    assert not matches("passwort", stored, algorithm)
    assert not matches("", stored, algorithm)


def test_the_salt_counts() -> None:
    assert hashed("x", b"1234") != hashed("x", b"4321")


@pytest.mark.parametrize(
    "stored", ["", "not base64!", base64.b64encode(b"1234").decode(), "kI3G", "é"]
)
def test_a_broken_hash_lets_nobody_in(stored: str) -> None:
    assert not matches("", stored)


def test_a_salt_of_another_length_and_an_unknown_algorithm_are_refused() -> None:
    with pytest.raises(ValueError, match=f"salt has {SALT_BYTES} octets, not 3"):
        hashed("x", b"123")
    with pytest.raises(ValueError, match="unknown password hashing algorithm 'crc'"):
        hashed("x", SALT, "crc")
