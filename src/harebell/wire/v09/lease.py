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
from harebell.wire.v09.method import Method

NAME = "lease"
VERSION = 1
CLASS_ID = 0xF000

TABLE = """
lease 61440
  open            10  C   -> open-ok: shortstr queue group, long timeout
  open-ok         11  S   : longlong epoch, shortstr generation, longlong committed last lost,
                          long timeout, longstr claims
  claim           20  C   -> claim-ok: shortstr queue group, longlong epoch, long messages,
                          longlong octets
  claim-ok        21  S   : longlong number messages octets first end
  commit          30  C   -> commit-ok: shortstr queue group, longlong epoch number
  commit-ok       31  S   : longlong committed messages
  release         40  C   -> release-ok: shortstr queue group, longlong epoch number
  release-ok      41  S   : longlong messages
  renew           50  C   -> renew-ok: shortstr queue group, longlong epoch
  renew-ok        51  S
  close           60  C   -> close-ok: shortstr queue group, longlong epoch, bit forget
  close-ok        61  S   : longlong messages
"""

_CLAIM = Struct(">QQQQQ")


class LeaseOpen(Method):
    """Open a group in a new epoch, which fences all older ones."""

    queue: str = ""
    group: str = ""
    timeout: int = 0


class LeaseOpenOk(Method):
    """The new epoch, and the state of the group."""

    epoch: int = 0
    generation: str = ""
    committed: int = 0
    last: int = 0
    lost: int = 0
    timeout: int = 0
    claims: bytes = b""


class LeaseClaim(Method):
    """Claim ready messages."""

    queue: str = ""
    group: str = ""
    epoch: int = 0
    messages: int = 0
    octets: int = 0


class LeaseClaimOk(Method):
    """The claim; number 0 if no message was ready."""

    number: int = 0
    messages: int = 0
    octets: int = 0
    first: int = 0
    end: int = 0


class LeaseCommit(Method):
    """Acknowledge all messages up to a claim."""

    queue: str = ""
    group: str = ""
    epoch: int = 0
    number: int = 0


class LeaseCommitOk(Method):
    """The last committed claim, and the number of messages that this commit acknowledged."""

    committed: int = 0
    messages: int = 0


class LeaseRelease(Method):
    """Requeue the messages of all claims from a number on; 0 for all."""

    queue: str = ""
    group: str = ""
    epoch: int = 0
    number: int = 0


class LeaseReleaseOk(Method):
    """The number of requeued messages."""

    messages: int = 0


class LeaseRenew(Method):
    """Let this connection hold the group, in its present epoch."""

    queue: str = ""
    group: str = ""
    epoch: int = 0


class LeaseRenewOk(Method):
    """The connection holds the group."""


class LeaseClose(Method):
    """Let go of the group; with `forget` delete it and requeue its claims."""

    queue: str = ""
    group: str = ""
    epoch: int = 0
    forget: bool = False


class LeaseCloseOk(Method):
    """The number of requeued messages."""

    messages: int = 0


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
    if len(octets) % _CLAIM.size:
        text = f"lease.open-ok: field 'claims' has {len(octets)} octets, not 40 for each claim"
        raise ProtocolError(502, text, CLASS_ID, 11)
    return [ClaimInfo(*found) for found in _CLAIM.iter_unpack(octets)]
