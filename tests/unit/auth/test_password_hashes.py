"""Password hashes in RabbitMQ's form."""

from __future__ import annotations

import base64

import pytest

from harebell.auth.password_hashes import (
    MD5,
    SALT_BYTES,
    SCRYPT,
    SCRYPT_SALT_BYTES,
    SHA256,
    SHA512,
    fault_of,
    hashed,
    matches,
)

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
    with pytest.raises(ValueError, match=f"salt has {SALT_BYTES} bytes, not 3"):
        hashed("x", b"123")
    with pytest.raises(ValueError, match="unknown password hashing algorithm 'crc'"):
        hashed("x", SALT, "crc")


def test_scrypt_says_with_what_it_was_computed() -> None:
    stored = hashed("pässword", b"s" * SCRYPT_SALT_BYTES, SCRYPT)
    assert stored.startswith("$scrypt$ln=14,r=8,p=1$")
    assert matches("pässword", stored, SCRYPT)
    assert not matches("passwort", stored, SCRYPT)


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR",
        "$scrypt$ln=40,r=8,p=1$c2FsdA$aGFzaA",
        "$scrypt$ln=14,r=99,p=1$c2FsdA$aGFzaA",
        "$scrypt$ln=14,r=8,p=1$c2FsdA$aGFzaA",
        "$scrypt$ln=14,r=8,p=1$c$aGFzaA",
        "$scrypt$ln=0,r=8,p=1$c2FsdA$aGFzaA",
    ],
)
def test_a_scrypt_hash_that_cannot_be_used_says_why_and_lets_nobody_in(stored: str) -> None:
    assert fault_of(stored, SCRYPT)
    assert not matches("", stored, SCRYPT)
