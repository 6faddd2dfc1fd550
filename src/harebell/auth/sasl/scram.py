"""SASL SCRAM (RFC 5802, RFC 7677): prove knowledge of a password without sending it.

    C  n,,n=user,r=<nonce>
    S  r=<nonce><more>,s=<salt>,i=<iterations>
    C  c=biws,r=<nonce><more>,p=<proof>
    S  v=<signature>                                  proves that the server has the verifier
    C                                                 an empty response

Channel binding is not offered. An unknown user gets a constant salt and fails at the proof, so the
exchange does not reveal which users exist.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from harebell.auth.limits import SCRAM_MESSAGE_BYTES
from harebell.auth.sasl.exchange import Context, Exchange, SaslError
from harebell.auth.users import User
from harebell.auth.verifiers import DIGESTS, ITERATIONS, SALT_BYTES, SHA1, SHA256, Verifier

_NONCE_BYTES = 18
_ESCAPES = (("=2C", ","), ("=3D", "="))


class Scram(Exchange):
    """SCRAM with one hash function."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._digest = DIGESTS[self.NAME]
        self._steps = iter((self._first, self._final, self._end))
        self._known: User | None = None
        self._verifier = Verifier(0, b"", b"", b"")
        self._binding = b""
        self._said = b""
        self._nonce = ""

    @classmethod
    def possible(cls, context: Context) -> bool:
        """True if a user has a verifier."""
        return context.users.some_know(cls.NAME)

    def step(self, response: bytes) -> bytes | None:
        """Process the next message of the client."""
        if len(response) > SCRAM_MESSAGE_BYTES:
            raise SaslError(f"a SCRAM message has at most {SCRAM_MESSAGE_BYTES} octets")
        return next(self._steps)(response)

    def _first(self, response: bytes) -> bytes:
        """Process client-first-message."""
        try:
            text = response.decode()
        except UnicodeDecodeError:
            raise SaslError("a SCRAM message is UTF-8") from None
        parts = text.split(",", 2)
        if len(parts) != len(("flag", "identity", "bare")) or parts[0] not in ("n", "y"):
            raise SaslError("a SCRAM exchange begins with n,,n=<user>,r=<nonce>")
        fields = _fields(parts[2])
        if list(fields)[:2] != ["n", "r"] or not fields["r"]:
            raise SaslError("a SCRAM exchange begins with a user and a nonce")
        self.name = _unescaped(fields["n"])
        if parts[1] and _unescaped(parts[1].removeprefix("a=")) != self.name:
            raise SaslError(
                "a SCRAM exchange asks to act for another user than the one that logs in: leave "
                "the authorization identity empty"
            )
        self._binding = f"{parts[0]},{parts[1]},".encode()
        self._known = self.context.users.get(self.name)
        self._verifier = self._verifier_of(self._known)
        more = base64.b64encode(self.context.rng(_NONCE_BYTES)).decode()
        self._nonce = fields["r"] + more
        salt = base64.b64encode(self._verifier.salt).decode()
        asked = f"r={self._nonce},s={salt},i={self._verifier.iterations}".encode()
        self._said = parts[2].encode() + b"," + asked
        return asked

    def _verifier_of(self, user: User | None) -> Verifier:
        verifier = None if user is None else user.verifiers.get(self.NAME)
        if verifier is not None:
            return verifier
        self._known = None
        secret = self.context.users.secret
        salt = hmac.digest(secret, self.name.encode(), "sha256")[:SALT_BYTES]
        return Verifier(ITERATIONS, salt, secret, secret)

    def _final(self, response: bytes) -> bytes | None:
        """Process client-final-message."""
        self.guess = True
        without, _, proof_text = response.rpartition(b",p=")
        fields = _fields(without.decode(errors="replace"))
        try:
            proof = base64.b64decode(proof_text, validate=True)
            binding = base64.b64decode(fields.get("c", ""), validate=True)
        except (binascii.Error, ValueError):
            raise SaslError("a SCRAM proof is in base64") from None
        if binding != self._binding or fields.get("r") != self._nonce:
            raise SaslError("a SCRAM proof repeats the binding and the nonce of its exchange")
        said = self._said + b"," + without
        signature = hmac.digest(self._verifier.stored, said, self._digest)
        if len(proof) != len(signature):
            return None
        key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        again = hashlib.new(self._digest, key).digest()
        if not hmac.compare_digest(again, self._verifier.stored) or self._known is None:
            return None
        self.right = True
        return b"v=" + base64.b64encode(hmac.digest(self._verifier.server, said, self._digest))

    def _end(self, response: bytes) -> None:
        """End after the client has accepted the signature."""
        if response:
            raise SaslError("a SCRAM exchange ends with an empty response")
        if self._known is not None and self.context.users.admits(self._known, self.context.address):
            self.user = self._known


class ScramSha1(Scram):
    """SCRAM with SHA-1."""

    NAME = SHA1


class ScramSha256(Scram):
    """SCRAM with SHA-256."""

    NAME = SHA256


def _fields(text: str) -> dict[str, str]:
    """Return the attributes of a message; SaslError if it is malformed."""
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise SaslError("a SCRAM message is attributes with commas between")
        fields[name] = value
    return fields


def _unescaped(name: str) -> str:
    for escape, letter in _ESCAPES:
        name = name.replace(escape, letter)
    return name
