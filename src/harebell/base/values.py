"""Values of field tables whose type Python alone does not say."""

from __future__ import annotations


class Long(int):
    """An integer that travels with 64 bits, however small it is (tag `l`)."""
