"""Values of field tables whose type a Python value does not tell."""

from __future__ import annotations

from typing import NamedTuple


class Typed(NamedTuple):
    """A value of 0-10 without an equivalent in Python.

    Args:
        code: the code of its type.
        data: the encoded value, without its length.
    """

    code: int
    data: bytes


class SectionValue(bytes):
    """A header whose value is already encoded, as AMQP 1.0 encodes values."""


class Long(int):
    """An integer that is always encoded with 64 bits (tag `l`)."""
