"""CRAM-MD5 (RFC 2195): the stored state of HMAC-MD5 keyed with a password.

CRAM-MD5$<inner><outer>        the two states of MD5 after the padded password, in base64

With these bytes one can log in with CRAM-MD5, but not with other mechanisms, without the password,
and can test a guess with two rounds of MD5. Both are weaker than a password hash or a SCRAM
verifier, so the bytes are stored only if the mechanism is enabled.
"""

from __future__ import annotations

import hashlib
import hmac

from harebell.auth.md5 import BLOCK_BYTES, STATE_BYTES, absorbed, finished

NAME = "CRAM-MD5"
CONTEXT_BYTES = 2 * STATE_BYTES
_INNER, _OUTER = 0x36, 0x5C


def context_of(password: str) -> bytes:
    """Return the stored state for a password."""
    key = password.encode()
    if len(key) > BLOCK_BYTES:
        key = hashlib.md5(key, usedforsecurity=False).digest()
    key = key.ljust(BLOCK_BYTES, b"\0")
    return b"".join(absorbed(bytes(octet ^ pad for octet in key)) for pad in (_INNER, _OUTER))


def proves(context: bytes, challenge: bytes, digest: bytes) -> bool:
    """True if a hexadecimal digest answers a challenge; takes constant time."""
    inner = finished(context[:STATE_BYTES], challenge)
    answer = finished(context[STATE_BYTES:], inner).hex().encode()
    return hmac.compare_digest(answer, digest.lower())
