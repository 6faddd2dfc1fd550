"""Password hashes: scrypt for new passwords, and RabbitMQ's formats for imported ones.

    $scrypt$ln=14,r=8,p=1$<salt>$<hash>      scrypt (RFC 7914), base64 without padding
    base64( salt(4) digest(salt + password) )      RabbitMQ's: SHA-256, SHA-512, MD5

scrypt takes 16 MiB and some 50 ms, so `matches` is called outside the event loop for it
(`is_slow`). `Users.judge` decides a login by it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable

from harebell.base.hash_names import MD5 as MD5
from harebell.base.hash_names import SCRYPT as SCRYPT
from harebell.base.hash_names import SHA256 as SHA256
from harebell.base.hash_names import SHA512 as SHA512

SALT_BYTES = 4
"""Salt length of RabbitMQ's formats."""
SCRYPT_SALT_BYTES = 16
_DIGESTS = {SHA256: hashlib.sha256, SHA512: hashlib.sha512, MD5: hashlib.md5}
_LOG_N, _R, _P = 14, 8, 1
"""Parameters of new hashes; a stored hash contains its own."""
_MAX_LOG_N, _MAX_R, _MAX_P = 17, 16, 16
_HASH_BYTES = 32
_BLOCK_BYTES = 128
_SPARE_BYTES = 1_048_576
_FORM = re.compile(r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([\w+/]+)\$([\w+/]+)", re.A)


def known_algorithm(name: str) -> bool:
    """True if the hash algorithm is supported."""
    return name in _DIGESTS or name == SCRYPT


def is_slow(algorithm: str) -> bool:
    """True if a comparison is slow by design."""
    return algorithm == SCRYPT


def salt_bytes(algorithm: str) -> int:
    """Return the salt length of an algorithm."""
    return SCRYPT_SALT_BYTES if algorithm == SCRYPT else SALT_BYTES


def hashed(password: str, salt: bytes, algorithm: str = SHA256) -> str:
    """Return the hash of a password with a salt of `salt_bytes` bytes.

    Raises:
        ValueError: the salt has another length, or the algorithm is unknown.
    """
    if not known_algorithm(algorithm):
        raise ValueError(f"unknown password hashing algorithm '{algorithm}'")
    if len(salt) != salt_bytes(algorithm):
        raise ValueError(f"a password salt has {salt_bytes(algorithm)} bytes, not {len(salt)}")
    if algorithm == SCRYPT:
        digest = _scrypt(password, salt, _LOG_N, _R, _P)
        return f"$scrypt$ln={_LOG_N},r={_R},p={_P}${_text(salt)}${_text(digest)}"
    return base64.b64encode(salt + _digest(password, salt, algorithm)).decode()


def _digest(password: str, salt: bytes, algorithm: str) -> bytes:
    """Return the digest in a hash of one of RabbitMQ's formats."""
    return _DIGESTS[algorithm](salt + password.encode()).digest()


def _salted(stored: str) -> bytes:
    """Return the salt and the digest of a hash of one of RabbitMQ's formats; b"" if it has none."""
    try:
        return binascii.a2b_base64(stored, strict_mode=True)
    except ValueError:
        return b""


def unmatched(algorithm: str, rng: Callable[[int], bytes]) -> str:
    """Return a stored hash that no password has, as far as anybody knows: its bytes are random.

    To compare with it takes as long as with the hash of a user.
    """
    salt = rng(salt_bytes(algorithm))
    if algorithm == SCRYPT:
        return f"$scrypt$ln={_LOG_N},r={_R},p={_P}${_text(salt)}${_text(rng(_HASH_BYTES))}"
    return base64.b64encode(salt + rng(_DIGESTS[algorithm]().digest_size)).decode()


def matches(password: str, stored: str, algorithm: str = SHA256) -> bool:
    """True if a password has that hash; takes constant time."""
    if algorithm == SCRYPT:
        if _scrypt_fault(stored):
            return False
        match = _FORM.fullmatch(stored)
        assert match is not None, "it was looked at"
        digest = _scrypt(password, _unbase64(match[4]), *(int(match[n]) for n in (1, 2, 3)))
        return hmac.compare_digest(digest, _unbase64(match[5]))
    raw = _salted(stored)
    if len(raw) <= SALT_BYTES:
        return False
    return hmac.compare_digest(_digest(password, raw[:SALT_BYTES], algorithm), raw[SALT_BYTES:])


def fault_of(stored: str, algorithm: str) -> str:
    """Return the error of a stored hash; "" for a valid one."""
    if algorithm == SCRYPT:
        return _scrypt_fault(stored)
    try:
        data = base64.b64decode(stored, validate=True)
    except (binascii.Error, ValueError):
        return "the password hash is not base64"
    if len(data) <= SALT_BYTES:
        return f"the password hash has {len(data)} bytes, and a salt alone has {SALT_BYTES}"
    return ""


def _scrypt_fault(stored: str) -> str:
    match = _FORM.fullmatch(stored)
    if match is None:
        return "the password hash is not $scrypt$ln=...,r=...,p=...$salt$hash"
    log_n, r, p = (int(match[n]) for n in (1, 2, 3))
    if not (1 <= log_n <= _MAX_LOG_N and 1 <= r <= _MAX_R and 1 <= p <= _MAX_P):
        return (
            f"the password hash takes more than ln={_MAX_LOG_N},r={_MAX_R},p={_MAX_P}, or nothing"
        )
    try:
        salt, digest = _unbase64(match[4]), _unbase64(match[5])
    except (binascii.Error, ValueError):
        return "the salt or the hash in the password hash is not base64"
    return "" if salt and len(digest) == _HASH_BYTES else "the password hash is cut"


def _scrypt(password: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    memory_limit = _BLOCK_BYTES * r * ((1 << log_n) + p + 2) + _SPARE_BYTES
    return hashlib.scrypt(
        password.encode(), salt=salt, n=1 << log_n, r=r, p=p, maxmem=memory_limit, dklen=_HASH_BYTES
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
