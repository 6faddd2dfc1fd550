"""SCRAM (RFC 5802) verifiers, stored beside the password hash.

SCRAM-SHA-256$4096:<salt>$<stored key>:<server key>       one per algorithm, separated by blanks
CRAM-MD5$<context>                                        see `harebell.auth.cram`, usually absent

The bytes are in base64. Verifiers are made when a password is set; a user imported with a hash
only, as from RabbitMQ's definitions, has none and logs in with PLAIN.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping

from msgspec import Struct

from harebell.auth import cram

SHA1 = "SCRAM-SHA-1"
SHA256 = "SCRAM-SHA-256"
DIGESTS = {SHA256: "sha256", SHA1: "sha1"}
"""The mechanisms and their hash functions, strongest first."""
ITERATIONS = 4096
"""Minimum of RFC 5802 and RFC 7677."""
SALT_BYTES = 16


class Verifier(Struct, frozen=True):
    """A SCRAM verifier.

    Args:
        iterations: the number of iterations.
        salt: random bytes that are hashed with the password.
        stored: the stored key: the hash of the client key.
        server: the server key.
    """

    iterations: int
    salt: bytes
    stored: bytes
    server: bytes

    def __repr__(self) -> str:
        return f"Verifier({self.iterations}, ***)"


def _normal(password: str) -> bytes:
    """Return a password in the form that is hashed; one in ASCII has no other."""
    if password.isascii():
        return password.encode()
    # The tables of Unicode 3.2 are for passwords with other letters only.
    from harebell.auth.saslprep import prepared

    return prepared(password)


def derived(mechanism: str, password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    """Return the verifier of a password."""
    digest = DIGESTS[mechanism]
    salted = hashlib.pbkdf2_hmac(digest, _normal(password), salt, iterations)
    client = hmac.digest(salted, b"Client Key", digest)
    server = hmac.digest(salted, b"Server Key", digest)
    return Verifier(iterations, salt, hashlib.new(digest, client).digest(), server)


def all_derived(password: str, rng: Callable[[int], bytes]) -> dict[str, Verifier]:
    """Return the verifiers of a password for all mechanisms."""
    return {name: derived(name, password, rng(SALT_BYTES)) for name in DIGESTS}


def written(verifiers: Mapping[str, Verifier], context: bytes = b"") -> str:
    """Return verifiers in their stored form, with the CRAM-MD5 state at the end, if any."""
    words = [
        f"{name}${each.iterations}:{_text(each.salt)}${_text(each.stored)}:{_text(each.server)}"
        for name, each in verifiers.items()
    ]
    if context:
        words.append(f"{cram.NAME}${_text(context)}")
    return " ".join(words)


def read(text: str) -> tuple[dict[str, Verifier], bytes]:
    """Return stored verifiers and the CRAM-MD5 state (b"" for none); ValueError if invalid."""
    verifiers = {}
    context = b""
    for each in text.split():
        parts = each.split("$")
        if parts[0] == cram.NAME:
            context = _context(parts[1:])
            continue
        if len(parts) != _PARTS or parts[0] not in DIGESTS:
            raise ValueError(f"'{parts[0]}' is no SCRAM verifier")
        iterations, _, salt = parts[1].partition(":")
        stored, _, server = parts[2].partition(":")
        try:
            verifiers[parts[0]] = Verifier(int(iterations), *map(_unbase64, (salt, stored, server)))
        except binascii.Error:
            raise ValueError(f"the verifier of {parts[0]} is damaged") from None
    return verifiers, context


def _context(parts: list[str]) -> bytes:
    try:
        data = _unbase64("".join(parts))
    except binascii.Error:
        data = b""
    if len(data) != cram.CONTEXT_BYTES:
        raise ValueError(f"the verifier of {cram.NAME} is damaged")
    return data


_PARTS = 3


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
