"""The wire: find the protocol of a peer by its first eight octets.

They are "AMQP", protocol id, major, minor and revision (AMQP 0-9-1 4.2.2, AMQP 1.0 2.2); the
versions before 0-9-1 put other things into the last four:

    0 1 0 0    1.0
    3 1 0 0    1.0, of which the SASL layer comes first
    0 0 9 1    0-9-1
    1 1 0 9    0-9
    1 1 8 0    0-8, and 1 1 9 1 of some of its clients
    1 1 0 10   0-10; on a listener that says so, the transitional 0-10 of 2007
    1 1 99 0   the transitional 0-10 under its later number
"""

from __future__ import annotations

from msgspec import Struct

HEADER_1_0 = b"AMQP\x00\x01\x00\x00"
HEADER_1_0_SASL = b"AMQP\x03\x01\x00\x00"
HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"
HEADER_0_9 = b"AMQP\x01\x01\x00\x09"
HEADER_0_8 = b"AMQP\x01\x01\x08\x00"
HEADER_0_8_AMQPLIB = b"AMQP\x01\x01\x09\x01"
HEADER_0_10 = b"AMQP\x01\x01\x00\x0a"
HEADER_0_10_PREVIEW = b"AMQP\x01\x01\x63\x00"
HEADER_BYTES = 8

VERSION_1_0 = "1-0"
FINAL_0_10 = "0-10"
TRANSITIONAL_0_10 = "0-10t"

VERSIONS = {
    HEADER_0_9_1: "0-9-1",
    HEADER_0_9: "0-9",
    HEADER_0_8: "0-8",
    HEADER_0_8_AMQPLIB: "0-8",
    HEADER_0_10: FINAL_0_10,
    HEADER_0_10_PREVIEW: TRANSITIONAL_0_10,
    HEADER_1_0: VERSION_1_0,
    HEADER_1_0_SASL: VERSION_1_0,
}
"""Headers that are understood, as a listener accepts them by default."""

_SHOWN = {TRANSITIONAL_0_10: "AMQP 0-10 (transitional)", VERSION_1_0: "AMQP 1.0"}
_BEGINNINGS_1_0 = (b"AMQP\0", b"AMQP\2", b"AMQP\3")
"""With the protocol ids of AMQP, TLS and SASL (AMQP 1.0 2.2)."""
_BEGINNINGS = (*VERSIONS, *_BEGINNINGS_1_0)


class Sniffed(Struct, frozen=True):
    """The protocol that the first octets of a peer ask for.

    Args:
        version: the protocol version; "" if it is not known.
        sasl: whether the header asks for the SASL layer of 1.0.
        incomplete: whether more octets are needed.
        answer: the octets to write before the socket is closed, for a protocol that is not served.
    """

    version: str = ""
    sasl: bool = False
    incomplete: bool = False
    answer: bytes = b""


_SNIFFED = {
    header: Sniffed(version, sasl=header == HEADER_1_0_SASL) for header, version in VERSIONS.items()
}


def sniff(data: bytes, dialect: str = FINAL_0_10) -> Sniffed:
    """Find the version in the first octets of a peer; an impossible header is refused at once.

    Args:
        data: all octets received so far.
        dialect: the version that `AMQP 1 1 0 10` means on the listener, FINAL_0_10 or
            TRANSITIONAL_0_10.
    """
    head = data[:HEADER_BYTES]
    sniffed = _SNIFFED.get(head)
    if sniffed is not None:
        return Sniffed(dialect) if head == HEADER_0_10 else sniffed
    # A shorter beginning that fits none is answered now: an HTTP client may never send eight.
    if len(head) < HEADER_BYTES and any(header.startswith(head) for header in _BEGINNINGS):
        return Sniffed(incomplete=True)
    # AMQP 0-9-1 4.2.2 and 1.0 2.2: a server writes a header that it supports, then closes the
    # socket; of 1.0 the one with the SASL layer, which every client of 1.0 may use.
    return Sniffed(answer=HEADER_1_0_SASL if _asks_for_1_0(head) else HEADER_0_9_1)


def _asks_for_1_0(head: bytes) -> bool:
    """Return whether a header that is not served is one of 1.0, or of what comes after it."""
    # Six octets are enough: what is said of a beginning is not taken back.
    return head[:5] in _BEGINNINGS_1_0 and head[5:6] >= b"\1"


def shown(version: str) -> str:
    """Return a version as tools show it; "" before it is known."""
    return _SHOWN.get(version, f"AMQP {version}" if version else "")


def as_tuple(version: str) -> str:
    """Return a version as RabbitMQ's events write it, a tuple of Erlang: {0,9,1}."""
    return f"{{{version.removesuffix('t').replace('-', ',')}}}"
