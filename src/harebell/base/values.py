"""Values of field tables whose type a Python value does not tell."""

from __future__ import annotations


class Long(int):
    """An integer that is always encoded with 64 bits (tag `l`)."""
