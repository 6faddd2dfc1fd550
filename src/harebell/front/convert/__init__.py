"""Convert messages between protocol families, and edit them for the model.

A message keeps the bytes of the family it was published in. A delivery compares two integers, and
calls `converted` only if the families differ. The result is cached, so a fanout to many peers
converts once.

    file --- basic --- stream               each line is a module with `to_basic` and `from_basic`;
               |                            other pairs are converted via basic
               +--- 0-10
               +--- transitional 0-10
               +--- 1.0

docs/protocols/conversion.md has the table of all properties.
"""

from __future__ import annotations

from harebell.front.convert.dispatch import MODULES, Pair, converted, pair
from harebell.front.convert.editor import (
    EDITOR,
    basic_of,
    composed,
    expiration_of,
    forwarded,
    headers_of,
    properties_of,
    property_of,
    with_headers,
)

__all__ = [
    "EDITOR",
    "MODULES",
    "Pair",
    "basic_of",
    "composed",
    "converted",
    "expiration_of",
    "forwarded",
    "headers_of",
    "pair",
    "properties_of",
    "property_of",
    "with_headers",
]
