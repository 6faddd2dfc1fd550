"""The contract of a SASL mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harebell.base.errors import HarebellError


class SaslError(HarebellError):
    """The client's response is not one of this mechanism."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client gave to prove who it is. The password does not show in a repr."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.user!r}, ***)"


class Mechanism:
    """A mechanism that is done after the client's first response.

    Args:
        decode_table: decodes a field table without its length, for the mechanisms that use one.
    """

    NAME = ""

    def __init__(self, decode_table: Callable[[bytes], Mapping[str, Any]]) -> None:
        self._decode_table = decode_table

    def credentials(self, response: bytes) -> Credentials:
        """The credentials in a response.

        Raises:
            SaslError: the response is malformed.
        """
        raise NotImplementedError
