"""Convert messages between protocol families, and answer what the model asks of them.

A message keeps the bytes of the family it was published in. A delivery compares two
integers, and only when they differ asks `converted` for the message as its own family has it.
What comes out is kept, so a fanout to many peers converts once.

    file --- basic --- stream               each line is a module with `to_basic` and `from_basic`;
               |                            two families without a line between them go by basic
               +--- 0-10
               +--- transitional 0-10

docs/protocols/conversion.md is the table of what becomes of every property.
"""

from __future__ import annotations

from harebell.front.convert.dispatch import MODULES, Pair, converted, pair
from harebell.front.convert.editor import (
    EDITOR,
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
