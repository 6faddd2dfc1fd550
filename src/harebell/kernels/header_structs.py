"""The structs of a header segment of AMQP 0-10, as both twins in Python read them.

{ size(4) code(2) packing-flags(2) fields }        the flag of the first field is bit 0
"""

from __future__ import annotations

DELIVERY_CODE = b"\x04\x01"
MESSAGE_CODE = b"\x04\x03"
HEADERS = 0x0100
"""The flag of the application headers in the message properties."""
NO_BODY = b"\0\0\0\x04\xff\xff\0\0"
"""A struct that no peer sends: it marks, behind the others, a transfer without a body segment."""
_DELIVERY_WIDTHS = (0, 0, 0, 1, 1, 8, 8, 8)
"""Octets of the delivery properties before the exchange; the first three are bits."""


class UnreadableError(Exception):
    """A transfer that has to be decoded the slow way, which finds and names its fault."""


def structs(raw: bytes) -> list[tuple[bytes, int, int, int]]:
    """Return code, packing flags (first octet lowest), begin and end of each struct."""
    found = []
    at = 0
    while at < len(raw):
        end = at + 4 + int.from_bytes(raw[at : at + 4])
        if at + 8 > end or end > len(raw):
            raise UnreadableError
        found.append((raw[at + 4 : at + 6], raw[at + 6] | raw[at + 7] << 8, at + 8, end))
        at = end
    return found


def before_exchange(packed: int) -> int:
    """Return the size of the fields before the exchange."""
    return sum(width for bit, width in enumerate(_DELIVERY_WIDTHS) if packed >> bit & 1)


def str8(raw: bytes, at: int, end: int) -> int:
    """Return where a str8 ends."""
    after = at + 1 + raw[at] if at < end else end + 1
    if after > end:
        raise UnreadableError
    return after
