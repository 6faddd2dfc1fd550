"""AMQPLAIN: a field table with LOGIN and PASSWORD, without the length of the table.

The 0-8 document calls it PLAIN; its common name is younger.
"""

from __future__ import annotations

from harebell.auth.sasl.mechanism import Credentials, Mechanism, SaslError
from harebell.base.errors import ProtocolError


class AmqPlain(Mechanism):
    """User and password as table fields."""

    NAME = "AMQPLAIN"

    def credentials(self, response: bytes) -> Credentials:
        """Return LOGIN and PASSWORD of the table."""
        try:
            table = self._decode_table(response)
        except ProtocolError as error:
            raise SaslError(f"an AMQPLAIN response is a field table: {error.text}") from None
        user, password = table.get("LOGIN"), table.get("PASSWORD")
        if not isinstance(user, str) or not isinstance(password, str):
            raise SaslError("an AMQPLAIN response has LOGIN and PASSWORD as long strings")
        return Credentials(user, password)
