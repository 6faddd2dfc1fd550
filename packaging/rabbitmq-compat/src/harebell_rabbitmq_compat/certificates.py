"""Read until when a certificate is valid, from its DER bytes.

A certificate (RFC 5280 4.1) is a SEQUENCE whose first member is a SEQUENCE of: an optional [0] with
the version, the serial number, the algorithm, the issuer, and the validity, which has two times.
"""

from __future__ import annotations

import calendar
import time

_VERSION = 0xA0
_UTC_TIME = 0x17
_LONG = 0x80


def not_after(der: bytes) -> float:
    """Return the end of the validity in seconds since 1970.

    Args:
        der: the certificate.

    Raises:
        ValueError: it is not a certificate.
    """
    try:
        _, body, _ = _element(der, 0)
        _, body, _ = _element(body, 0)
        position = 0
        members: list[bytes] = []
        while len(members) < 4:
            tag, value, position = _element(body, position)
            if tag != _VERSION:
                members.append(value)
        validity = members[3]
        _, _, position = _element(validity, 0)
        tag, text, _ = _element(validity, position)
        form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
        return calendar.timegm(time.strptime(text.decode("ascii"), form))
    except (IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"not a certificate: {error}") from None


def _element(data: bytes, position: int) -> tuple[int, bytes, int]:
    """Return tag and content of the element at a position, and the position after it."""
    tag, length = data[position], data[position + 1]
    start = position + 2
    if length & _LONG:
        count = length & ~_LONG
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    return tag, data[start : start + length], start + length
