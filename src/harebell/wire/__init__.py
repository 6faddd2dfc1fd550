"""The wire: which protocol a peer speaks, told from its first eight octets.

They are "AMQP", protocol id, major, minor and revision (AMQP 0-9-1 4.2.2); the versions before
0-9-1 put other things into the last four.
"""

from __future__ import annotations

from dataclasses import dataclass

HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"
HEADER_0_9 = b"AMQP\x01\x01\x00\x09"
_SIZE = 8

VERSIONS = {HEADER_0_9_1: "0-9-1", HEADER_0_9: "0-9-1"}
"""Headers that are understood. 0-9 clients are content with 0-9-1, as RabbitMQ found."""


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


def sniff(data: bytes) -> Sniffed:
    """Look at what a peer has sent first; a header that cannot become ours is refused at once."""
    head = data[:_SIZE]
    if head in VERSIONS:
        return Sniffed(VERSIONS[head])
    if len(head) < _SIZE and any(header.startswith(head) for header in VERSIONS):
        return Sniffed(incomplete=True)
    return Sniffed(answer=HEADER_0_9_1)
