"""The wire: find the protocol of a peer by its first eight octets.

They are "AMQP", protocol id, major, minor and revision (AMQP 0-9-1 4.2.2); the versions before
0-9-1 put other things into the last four:

    0 0 9 1    0-9-1
    1 1 0 9    0-9
    1 1 8 0    0-8, and 1 1 9 1 of some of its clients
    1 1 0 10   0-10; on a listener that says so, the transitional 0-10 of 2007
    1 1 99 0   the transitional 0-10 under its later number
"""

from __future__ import annotations

from msgspec import Struct

HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"
HEADER_0_9 = b"AMQP\x01\x01\x00\x09"
HEADER_0_8 = b"AMQP\x01\x01\x08\x00"
HEADER_0_8_AMQPLIB = b"AMQP\x01\x01\x09\x01"
HEADER_0_10 = b"AMQP\x01\x01\x00\x0a"
HEADER_0_10_PREVIEW = b"AMQP\x01\x01\x63\x00"
HEADER_BYTES = 8

FINAL_0_10 = "0-10"
TRANSITIONAL_0_10 = "0-10t"

VERSIONS = {
    HEADER_0_9_1: "0-9-1",
    HEADER_0_9: "0-9",
    HEADER_0_8: "0-8",
    HEADER_0_8_AMQPLIB: "0-8",
    HEADER_0_10: FINAL_0_10,
    HEADER_0_10_PREVIEW: TRANSITIONAL_0_10,
}
"""Headers that are understood, as a listener accepts them by default."""

_SHOWN = {TRANSITIONAL_0_10: "AMQP 0-10 (transitional)"}


class Sniffed(Struct, frozen=True):
    """The protocol that the first octets of a peer ask for.

    Args:
        version: the protocol version; "" if it is not known.
        incomplete: whether more octets are needed.
        answer: the octets to write before the socket is closed, for a protocol that is not served.
    """

    version: str = ""
    incomplete: bool = False
    answer: bytes = b""


_SNIFFED = {header: Sniffed(version) for header, version in VERSIONS.items()}


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
    if len(head) < HEADER_BYTES and any(header.startswith(head) for header in VERSIONS):
        return Sniffed(incomplete=True)
    # AMQP 0-9-1 4.2.2: a server writes a header that it supports, then closes the socket.
    return Sniffed(answer=HEADER_0_9_1)


def shown(version: str) -> str:
    """Return a version as tools show it; "" before it is known."""
    return _SHOWN.get(version, f"AMQP {version}" if version else "")


def as_tuple(version: str) -> str:
    """Return a version as RabbitMQ's events write it, a tuple of Erlang: {0,9,1}."""
    return f"{{{version.removesuffix('t').replace('-', ',')}}}"
