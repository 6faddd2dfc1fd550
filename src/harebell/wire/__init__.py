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

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What the first octets say.

    Args:
        version: the protocol version, "" when it is not known.
        incomplete: more octets are needed.
        answer: what to write before closing, when the peer speaks nothing we know.
    """

    version: str = ""
    incomplete: bool = False
    answer: bytes = b""


def sniff(data: bytes, dialect: str = FINAL_0_10) -> Sniffed:
    """Look at what a peer has sent first; a header that cannot become ours is refused at once.

    Args:
        data: all that has come.
        dialect: the version that `AMQP 1 1 0 10` means here, FINAL_0_10 or TRANSITIONAL_0_10.
    """
    head = data[:HEADER_BYTES]
    version = VERSIONS.get(head)
    if version is not None:
        return Sniffed(dialect if head == HEADER_0_10 else version)
    if len(head) < HEADER_BYTES and any(header.startswith(head) for header in VERSIONS):
        return Sniffed(incomplete=True)
    return Sniffed(answer=HEADER_0_9_1)


def shown(version: str) -> str:
    """A version as tools show it; "" before it is known."""
    return _SHOWN.get(version, f"AMQP {version}" if version else "")


def as_tuple(version: str) -> str:
    """A version as RabbitMQ's events write it, a tuple of Erlang: {0,9,1}."""
    return f"{{{version.removesuffix('t').replace('-', ',')}}}"
