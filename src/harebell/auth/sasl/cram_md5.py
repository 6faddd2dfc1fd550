"""SASL CRAM-MD5 (RFC 2195): an HMAC of a challenge, keyed with the password.

    S  <nonce@harebell>
    C  user <hexadecimal digest>

It is offered only if the settings name it, as it is weaker than SCRAM and its stored state is more
sensitive (`harebell.auth.cram`). Unknown users fail in the same way as wrong passwords.
"""

from __future__ import annotations

import hmac

from harebell.auth.cram import CONTEXT_BYTES, NAME, proves
from harebell.auth.sasl.exchange import Context, Exchange, SaslError

_NONCE_BYTES = 12


class CramMd5(Exchange):
    """One challenge, one response."""

    NAME = NAME

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._challenge = b""

    @classmethod
    def possible(cls, context: Context) -> bool:
        """True if a password was set with the mechanism enabled."""
        return context.users.some_know(cls.NAME)

    def step(self, response: bytes) -> bytes | None:
        """Send the challenge, then check the response."""
        if not self._challenge:
            if response:
                raise SaslError("a CRAM-MD5 exchange begins with an empty response")
            self._challenge = f"<{self.context.rng(_NONCE_BYTES).hex()}@harebell>".encode()
            return self._challenge
        name, blank, digest = response.rpartition(b" ")
        try:
            self.name = name.decode()
        except UnicodeDecodeError:
            raise SaslError("a CRAM-MD5 answer is UTF-8") from None
        if not blank:
            raise SaslError("a CRAM-MD5 answer is <user> <hexadecimal digest>")
        users = self.context.users
        user = users.get(self.name)
        known = user.cram if user is not None else b""
        stands = known or hmac.digest(users.secret, name, "sha256")[:CONTEXT_BYTES]
        proved = proves(stands, self._challenge, digest)
        self.guess, self.right = True, proved and bool(known)
        if user is not None and known and proved and users.admits(user, self.context.address):
            self.user = user
        return None
