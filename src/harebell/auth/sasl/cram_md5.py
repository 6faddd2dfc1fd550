"""SASL CRAM-MD5 (RFC 2195): the digest of a challenge, keyed with the password.

    S  <nonce@harebell>
    C  user <hexadecimal digest>

It is offered only where the settings name it, as it is weaker than SCRAM and needs more of a
password on disk (`harebell.auth.cram`). A user that does not exist fails as a wrong password does.
"""

from __future__ import annotations

import hmac

from harebell.auth.cram import CONTEXT_BYTES, NAME, proves
from harebell.auth.sasl.exchange import Context, Exchange, SaslError

_NONCE_BYTES = 12


class CramMd5(Exchange):
    """One challenge, one answer."""

    NAME = NAME

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._challenge = b""

    @classmethod
    def possible(cls, context: Context) -> bool:
        """Whether there is anybody whose password was set with the mechanism on."""
        return any(user.cram for user in context.users.all())

    def step(self, response: bytes) -> bytes | None:
        """Ask, then take the answer."""
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
        if user is not None and known and proved and users.admits(user, self.context.address):
            self.user = user
        return None
