"""Password hashes in RabbitMQ's form, so that definitions can be carried over.

base64( salt(4) digest(salt + password) )        SHA-256 by default, SHA-512 and MD5 are read
too
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

SALT_BYTES = 4
SHA256 = "rabbit_password_hashing_sha256"
SHA512 = "rabbit_password_hashing_sha512"
MD5 = "rabbit_password_hashing_md5"

_DIGESTS = {SHA256: "sha256", SHA512: "sha512", MD5: "md5"}


def known_algorithm(name: str) -> bool:
    """Whether passwords can be compared with hashes of that algorithm."""
    return name in _DIGESTS


def hashed(password: str, salt: bytes, algorithm: str = SHA256) -> str:
    """The hash of a password under a salt of SALT_BYTES octets.

    Raises:
        ValueError: the salt has another length, or the algorithm is unknown.
    """
    if len(salt) != SALT_BYTES:
        raise ValueError(f"a password salt has {SALT_BYTES} octets, not {len(salt)}")
    if algorithm not in _DIGESTS:
        raise ValueError(f"unknown password hashing algorithm '{algorithm}'")
    digest = hashlib.new(_DIGESTS[algorithm], salt + password.encode()).digest()
    return base64.b64encode(salt + digest).decode()


def matches(password: str, stored: str, algorithm: str = SHA256) -> bool:
    """Whether a password has that hash; takes the same time wherever they differ."""
    try:
        raw = base64.b64decode(stored, validate=True)
    except (binascii.Error, ValueError):
        return False
    if len(raw) <= SALT_BYTES:
        return False
    again = hashed(password, raw[:SALT_BYTES], algorithm)
    return hmac.compare_digest(again, stored)
