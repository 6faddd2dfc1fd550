"""The stored form of a lease group: one row of the definitions, as bytes.

    all numbers are little-endian

    u8  version, 3
    u64 epoch | u64 committed | u64 last | u64 lost | u64 timeout in ms
    u32 number of open claims, oldest first            each a claim
    u32 number of recently committed claims            each a claim
    u64 since when it has no claims and no holder, in ms since 1970; 0 otherwise
    claim   u64 number | u64 messages | u64 bytes | u32 runs
            each run   u8 level | u64 first position | u64 end
            u16 levels
            each level u8 level | u64 position below which messages may be redelivered

Version 1 had no levels: the log then tells which messages may be redelivered. Version 2 had no idle
time.

A committed claim stays for a while in the second list; if its group is deleted, in the row with the
epochs of deleted groups. The row may be on disk before the settlements in the log, so a restart
settles the claim again, up to the end of the log, and removes the rest from the row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from struct import Struct
from struct import error as struct_error

import msgspec

from harebell.model.queue.features.lease import LeasedRange

_VERSION = 3
_WITHOUT_LEVELS = 1
_WITHOUT_IDLE = 2
_HEAD = Struct("<BQQQQQ")
_COUNT = Struct("<I")
_CLAIM = Struct("<QQQI")
_RUN = Struct("<BQQ")
_LEVELS = Struct("<H")
_IDLE = Struct("<Q")
_LEVEL = Struct("<BQ")


class LeaseRecordError(ValueError):
    """Bytes that are no valid group; the text says why."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The messages that are leased under one number.

    Args:
        number: 1 for the first claim of its group.
        messages: how many.
        byte_count: their size in the log.
        runs: their positions.
        seen: for each level, the position below which messages may be redelivered.
    """

    number: int
    messages: int
    byte_count: int
    runs: tuple[LeasedRange, ...]
    seen: tuple[tuple[int, int], ...] = ()
    # A group has many open claims and is stored with every new one, so each is encoded once.
    _written: list[bytes] = field(default_factory=list, init=False, compare=False, repr=False)

    def encode(self) -> bytes:
        """Return its bytes in the row of its group."""
        if not self._written:
            parts = [_CLAIM.pack(self.number, self.messages, self.byte_count, len(self.runs))]
            parts.extend([_RUN.pack(*run) for run in self.runs])
            parts.append(_LEVELS.pack(len(self.seen)))
            parts.extend([_LEVEL.pack(*each) for each in self.seen])
            self._written.append(b"".join(parts))
        return self._written[0]


class GroupRecord(msgspec.Struct, frozen=True):
    """The stored part of a group; see `harebell.model.lease.group.Group`."""

    epoch: int
    committed: int
    last: int
    lost: int
    timeout: int
    claims: tuple[Claim, ...] = ()
    settling: tuple[Claim, ...] = ()
    idle_since: int = 0

    def encode(self) -> bytes:
        """Return the bytes of the row."""
        head = _HEAD.pack(_VERSION, self.epoch, self.committed, self.last, self.lost, self.timeout)
        claims = _encode_claims(self.claims) + _encode_claims(self.settling)
        return head + claims + _IDLE.pack(self.idle_since)


def _encode_claims(claims: Iterable[Claim]) -> bytes:
    parts = [claim.encode() for claim in claims]
    return _COUNT.pack(len(parts)) + b"".join(parts)


def decode(data: bytes) -> GroupRecord:
    """Return the group of a row.

    Raises:
        LeaseRecordError: the bytes are no valid group.
    """
    try:
        version, epoch, committed, last, lost, timeout = _HEAD.unpack_from(data)
        if not _WITHOUT_LEVELS <= version <= _VERSION:
            raise LeaseRecordError(f"it has version {version}, known are 1 to {_VERSION}")
        leveled = version > _WITHOUT_LEVELS
        claims, offset = _decode_claims(data, _HEAD.size, leveled=leveled)
        settling, offset = _decode_claims(data, offset, leveled=leveled)
        idle_since = 0
        if version > _WITHOUT_IDLE:
            (idle_since,) = _IDLE.unpack_from(data, offset)
            offset += _IDLE.size
    except struct_error:
        raise LeaseRecordError("it is cut short") from None
    if offset != len(data):
        raise LeaseRecordError(f"{len(data) - offset} bytes too many")
    return GroupRecord(epoch, committed, last, lost, timeout, claims, settling, idle_since)


def _decode_claims(data: bytes, offset: int, *, leveled: bool) -> tuple[tuple[Claim, ...], int]:
    (count,) = _COUNT.unpack_from(data, offset)
    offset += _COUNT.size
    claims = []
    for _ in range(count):
        number, messages, size, runs = _CLAIM.unpack_from(data, offset)
        offset += _CLAIM.size
        end = offset + runs * _RUN.size
        if end > len(data):
            # Before the runs are made: a damaged number may be in the billions.
            raise LeaseRecordError("it is cut short")
        ranges = tuple([LeasedRange(*run) for run in _RUN.iter_unpack(data[offset:end])])
        if any(run.first >= run.end for run in ranges):
            raise LeaseRecordError(f"claim {number} has a run without positions")
        offset = end
        seen: tuple[tuple[int, int], ...] = ()
        if leveled:
            seen, offset = _decode_levels(data, offset)
        claims.append(Claim(number, messages, size, ranges, seen))
    return tuple(claims), offset


def _decode_levels(data: bytes, offset: int) -> tuple[tuple[tuple[int, int], ...], int]:
    (count,) = _LEVELS.unpack_from(data, offset)
    offset += _LEVELS.size
    end = offset + count * _LEVEL.size
    if end > len(data):
        raise LeaseRecordError("it is cut short")
    return tuple([(level, seen) for level, seen in _LEVEL.iter_unpack(data[offset:end])]), end
