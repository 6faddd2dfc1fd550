"""The structs of a header segment of AMQP 0-10, as both twins in Python read them.

{ size(4) code(2) packing-flags(2) fields }        the flag of the first field is bit 0
"""

from __future__ import annotations

DELIVERY_CODE = b"\x04\x01"
MESSAGE_CODE = b"\x04\x03"
HEADERS = 0x0100
"""The flag of the application headers in the message properties."""
NO_BODY = b"\0\0\0\x04\xff\xff\0\0"
"""A struct behind the others that marks a transfer without a body segment. No peer sends it: a
stored message has only a body, and an empty body is something else than none."""
_DELIVERY_WIDTHS = (0, 0, 0, 1, 1, 8, 8, 8)
"""Octets of the delivery properties before the exchange; the first three are bits."""


class UnreadableError(Exception):
    """A transfer that has to be decoded the slow way, which finds and names its fault."""


def structs(raw: bytes) -> list[tuple[bytes, int, int, int]]:
    """Return code, packing flags (first octet lowest), begin and end of each struct."""
    structs = []
    offset = 0
    while offset < len(raw):
        end = offset + 4 + int.from_bytes(raw[offset : offset + 4])
        if offset + 8 > end or end > len(raw):
            raise UnreadableError
        structs.append(
            (raw[offset + 4 : offset + 6], raw[offset + 6] | raw[offset + 7] << 8, offset + 8, end)
        )
        offset = end
    return structs


def before_exchange(packed: int) -> int:
    """Return the size of the fields before the exchange."""
    return sum(width for bit, width in enumerate(_DELIVERY_WIDTHS) if packed >> bit & 1)


def str8(raw: bytes, offset: int, end: int) -> int:
    """Return where a str8 ends."""
    after = offset + 1 + raw[offset] if offset < end else end + 1
    if after > end:
        raise UnreadableError
    return after
