"""The contract of a SASL mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from harebell.base.errors import HarebellError


class SaslError(HarebellError):
    """The response is invalid for this mechanism."""


class Credentials(Struct, frozen=True):
    """User and password of a client. The repr does not show the password."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.user!r}, ***)"


class Mechanism:
    """A mechanism that ends with the client's first response.

    Args:
        decode_table: decodes a field table without its length, for the mechanisms that use one.
    """

    NAME = ""

    def __init__(self, decode_table: Callable[[bytes], Mapping[str, Any]]) -> None:
        self._decode_table = decode_table

    def credentials(self, response: bytes) -> Credentials:
        """Return the credentials of a response.

        Raises:
            SaslError: the response is malformed.
        """
        raise NotImplementedError
