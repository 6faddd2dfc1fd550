"""The class lease: durable claims on a queue's messages. docs/guides/leases.md says what they mean.

    open-ok   claims     40 octets each, all numbers are unsigned and big-endian:
                         u64 number | u64 messages | u64 octets | u64 first | u64 end

`timeout` is in milliseconds. A queue without a name is the one declared last on the channel.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from harebell.base.errors import ProtocolError

NAME = "lease"
VERSION = 1
CLASS_ID = 0xF000

TABLE = """
lease 61440
  open            10  C   -> open-ok: shortstr queue group, long timeout
    "Open a group in a new epoch, which fences all older ones."
  open-ok         11  S   : longlong epoch, shortstr generation, longlong committed last lost,
                          long timeout, longstr claims
    "The new epoch, and the state of the group."
  claim           20  C   -> claim-ok: shortstr queue group, longlong epoch, long messages,
                          longlong octets
    "Claim ready messages."
  claim-ok        21  S   : longlong number messages octets first end
    "The claim; number 0 if no message was ready."
  commit          30  C   -> commit-ok: shortstr queue group, longlong epoch number
    "Acknowledge all messages up to a claim."
  commit-ok       31  S   : longlong committed messages
    "The last committed claim, and the number of messages that this commit acknowledged."
  release         40  C   -> release-ok: shortstr queue group, longlong epoch number
    "Requeue the messages of all claims from a number on; 0 for all."
  release-ok      41  S   : longlong messages
    "The number of requeued messages."
  renew           50  C   -> renew-ok: shortstr queue group, longlong epoch
    "Let this connection hold the group, in its present epoch."
  renew-ok        51  S
    "The connection holds the group."
  close           60  C   -> close-ok: shortstr queue group, longlong epoch, bit forget
    "Let go of the group; with `forget` delete it and requeue its claims."
  close-ok        61  S   : longlong messages
    "The number of requeued messages."
"""

_CLAIM = Struct(">QQQQQ")


class ClaimInfo(NamedTuple):
    """A claim, as the methods describe it.

    Args:
        number: 1 for the first one of its group.
        messages: how many.
        octets: that they take in the broker's log.
        first: the first position.
        end: the position behind the last one.
    """

    number: int
    messages: int
    octets: int
    first: int
    end: int


def encode_claims(claims: Iterable[ClaimInfo]) -> bytes:
    """Encode `claims` of open-ok."""
    return b"".join([_CLAIM.pack(*claim) for claim in claims])


def decode_claims(octets: bytes) -> list[ClaimInfo]:
    """Decode `claims` of open-ok.

    Raises:
        ProtocolError: 502, it is cut short.
    """
    # It has no count: its length is that of the field.
    if len(octets) % _CLAIM.size:
        text = f"lease.open-ok: field 'claims' has {len(octets)} octets, not 40 for each claim"
        raise ProtocolError(502, text, CLASS_ID, 11)
    return [ClaimInfo(*claim) for claim in _CLAIM.iter_unpack(octets)]
