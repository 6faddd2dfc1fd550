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
    """Take a group over: every older epoch is fenced."""

    queue: str = ""
    group: str = ""
    timeout: int = 0


class LeaseOpenOk(Method):
    """The new epoch, and what the group has."""

    epoch: int = 0
    generation: str = ""
    committed: int = 0
    last: int = 0
    lost: int = 0
    timeout: int = 0
    claims: bytes = b""


class LeaseClaim(Method):
    """Claim messages that are ready."""

    queue: str = ""
    group: str = ""
    epoch: int = 0
    messages: int = 0
    octets: int = 0


class LeaseClaimOk(Method):
    """What was claimed; number 0 when nothing was ready."""

    number: int = 0
    messages: int = 0
    octets: int = 0
    first: int = 0
    end: int = 0


class LeaseCommit(Method):
    """Everything up to a claim is done with."""

    queue: str = ""
    group: str = ""
    epoch: int = 0
    number: int = 0


class LeaseCommitOk(Method):
    """What the group has committed, and how many messages were settled just now."""

    committed: int = 0
    messages: int = 0


class LeaseRelease(Method):
    """Claims from a number on go back to the queue; 0 for all."""

    queue: str = ""
    group: str = ""
    epoch: int = 0
    number: int = 0


class LeaseReleaseOk(Method):
    """How many messages went back."""

    messages: int = 0


class LeaseRenew(Method):
    """This connection holds the group from now on, in the epoch that it has."""

    queue: str = ""
    group: str = ""
    epoch: int = 0


class LeaseRenewOk(Method):
    """It does."""


class LeaseClose(Method):
    """The group is held no longer; with `forget` it is gone, and its claims go back."""

    queue: str = ""
    group: str = ""
    epoch: int = 0
    forget: bool = False


class LeaseCloseOk(Method):
    """How many messages went back."""

    messages: int = 0


class ClaimInfo(NamedTuple):
    """One claim, as the methods tell of it.

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
    """The field `claims` of open-ok."""
    return b"".join([_CLAIM.pack(*claim) for claim in claims])


def decode_claims(octets: bytes) -> list[ClaimInfo]:
    """The way back.

    Raises:
        ProtocolError: 502, it is cut short.
    """
    if len(octets) % _CLAIM.size:
        text = f"lease.open-ok: field 'claims' has {len(octets)} octets, not 40 for each claim"
        raise ProtocolError(502, text, CLASS_ID, 11)
    return [ClaimInfo(*found) for found in _CLAIM.iter_unpack(octets)]
