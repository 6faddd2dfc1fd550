"""What CRAM-MD5 (RFC 2195) needs of a password: HMAC-MD5 begun with it, and not finished.

CRAM-MD5$<inner><outer>        the two states of MD5 after the padded password, in base64

Who has these octets can log in with CRAM-MD5 without the password, and nowhere else; who guesses
passwords checks a guess against them with two rounds of MD5. Both are worse than what a password's
hash or SCRAM's verifier gives away. So they are made for those who ask for the mechanism only.
"""

from __future__ import annotations

import hashlib
import hmac

from harebell.auth.md5 import BLOCK_BYTES, STATE_BYTES, absorbed, finished

NAME = "CRAM-MD5"
CONTEXT_BYTES = 2 * STATE_BYTES
_INNER, _OUTER = 0x36, 0x5C


def context_of(password: str) -> bytes:
    """What is kept of a password."""
    key = password.encode()
    if len(key) > BLOCK_BYTES:
        key = hashlib.md5(key, usedforsecurity=False).digest()
    key = key.ljust(BLOCK_BYTES, b"\0")
    return b"".join(absorbed(bytes(octet ^ pad for octet in key)) for pad in (_INNER, _OUTER))


def proves(context: bytes, challenge: bytes, digest: bytes) -> bool:
    """Whether a hexadecimal digest is the answer to a challenge; takes the same time always."""
    inner = finished(context[:STATE_BYTES], challenge)
    answer = finished(context[STATE_BYTES:], inner).hex().encode()
    return hmac.compare_digest(answer, digest.lower())
