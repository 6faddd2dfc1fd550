"""What is kept of a group of leases: one row of the definitions, as octets.

    all numbers are little-endian

    u8  version, 1
    u64 epoch | u64 committed | u64 last | u64 lost | u64 timeout in ms
    u32 claims that are open, oldest first             each a claim
    u32 claims that were committed just before         each a claim
    claim   u64 number | u64 messages | u64 octets | u32 runs
            each run   u8 level | u64 first position | u64 end

A claim that is committed stays for a while among the second: its row may be on disk before the
log knows what is settled, so a restart settles it again. Positions are never used twice, so that
is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error

from harebell.model.queue.leased import Run

_VERSION = 1
_HEAD = Struct("<BQQQQQ")
_COUNT = Struct("<I")
_CLAIM = Struct("<QQQI")
_RUN = Struct("<BQQ")


class LeaseRecordError(ValueError):
    """Octets that are no group; says why."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Messages that are leased under one number.

    Args:
        number: 1 for the first claim of its group.
        messages: how many.
        octets: that they take in the log.
        runs: where they are.
    """

    number: int
    messages: int
    octets: int
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group as it is kept; see `harebell.model.lease.Group`."""

    epoch: int
    committed: int
    last: int
    lost: int
    timeout: int
    claims: tuple[Claim, ...] = ()
    settling: tuple[Claim, ...] = ()

    def encode(self) -> bytes:
        """The octets of the row."""
        head = _HEAD.pack(_VERSION, self.epoch, self.committed, self.last, self.lost, self.timeout)
        return head + _encode_claims(self.claims) + _encode_claims(self.settling)


def _encode_claims(claims: Iterable[Claim]) -> bytes:
    parts = [b""]
    count = 0
    for claim in claims:
        count += 1
        parts.append(_CLAIM.pack(claim.number, claim.messages, claim.octets, len(claim.runs)))
        parts.extend([_RUN.pack(*run) for run in claim.runs])
    parts[0] = _COUNT.pack(count)
    return b"".join(parts)


def decode(octets: bytes) -> GroupRecord:
    """The group in a row.

    Raises:
        LeaseRecordError: there is none.
    """
    try:
        version, epoch, committed, last, lost, timeout = _HEAD.unpack_from(octets)
        if version != _VERSION:
            raise LeaseRecordError(f"it has version {version}, known is {_VERSION}")
        claims, at = _decode_claims(octets, _HEAD.size)
        settling, at = _decode_claims(octets, at)
    except struct_error:
        raise LeaseRecordError("it is cut short") from None
    if at != len(octets):
        raise LeaseRecordError(f"{len(octets) - at} octets too many")
    return GroupRecord(epoch, committed, last, lost, timeout, claims, settling)


def _decode_claims(octets: bytes, at: int) -> tuple[tuple[Claim, ...], int]:
    (count,) = _COUNT.unpack_from(octets, at)
    at += _COUNT.size
    found = []
    for _ in range(count):
        number, messages, size, runs = _CLAIM.unpack_from(octets, at)
        at += _CLAIM.size
        end = at + runs * _RUN.size
        if end > len(octets):
            raise LeaseRecordError("it is cut short")
        where = tuple([Run(*found) for found in _RUN.iter_unpack(octets[at:end])])
        if any(run.first >= run.end for run in where):
            raise LeaseRecordError(f"claim {number} has a run without positions")
        found.append(Claim(number, messages, size, where))
        at = end
    return tuple(found), at
