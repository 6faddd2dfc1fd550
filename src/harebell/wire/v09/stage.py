"""The class stage: batches that are published together, once.

docs/protocols/extensions-publishing.md explains it.

    commit    parts      20 octets each, all numbers are unsigned and big-endian:
                         u32 part | u64 attempt | u64 rows
    append    content    one encapsulated record batch of Arrow's IPC format, without compression;
                         its columns are named as in `columns`: value,routing_key,properties.type

A batch has a number that grows. `next` is the smallest that can still be committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from harebell.base.errors import ProtocolError

NAME = "stage"
VERSION = 1
CLASS_ID = 0xF002
COMMIT_ID = 30

TABLE = """
stage 61442
  open            10  C   -> open-ok: shortstr publisher run
    "Begin or continue a run of a publisher, which fences all its other runs."
  open-ok         11  S   : longlong next
    "The number of the next batch."
  append          20  C   +content -> append-ok: shortstr publisher run, longlong batch, long part,
                          longlong attempt, long number, longstr columns
    "Stage a piece of a part of a batch; its content follows."
  append-ok       21  S   : longlong rows octets
    "What is staged of this attempt of the part."
  commit          30  C   -> commit-ok: shortstr publisher run, longlong batch,
                          shortstr exchange routing-key, octet delivery-mode, bit mandatory,
                          shortstr dead-letter, longstr parts
    "Publish these parts of a batch, all or nothing."
  commit-ok       31  S   : longlong rows unroutable, bit repeated
    "The batch is published; `repeated` if it had been before, and nothing was done."
  abort           40  C   -> abort-ok: shortstr publisher run, longlong batch
    "Drop all staged rows of a batch."
  abort-ok        41  S   : longlong rows
    "The number of dropped rows."
  discard         50  C   -> discard-ok: shortstr publisher run, longlong batch, long part,
                          longlong attempt
    "Drop the rows that one attempt has staged of a part."
  discard-ok      51  S   : longlong rows
    "The number of dropped rows."
"""

_PART = Struct(">IQQ")


class StagePart(NamedTuple):
    """A part of a batch as its writer finished it.

    Args:
        part: its number within the batch.
        attempt: the number of the attempt that wrote it; earlier ones are dropped.
        rows: the number of its rows, which the broker compares with the staged ones.
    """

    part: int
    attempt: int
    rows: int


def encode_parts(parts: Iterable[StagePart]) -> bytes:
    """Encode `parts` of commit."""
    return b"".join([_PART.pack(*part) for part in parts])


def decode_parts(octets: bytes) -> list[StagePart]:
    """Decode `parts` of commit.

    Raises:
        ProtocolError: 502, it is cut short.
    """
    if len(octets) % _PART.size:
        text = f"stage.commit: field 'parts' has {len(octets)} octets, not 20 for each part"
        raise ProtocolError(502, text, CLASS_ID, COMMIT_ID)
    return [StagePart(*parts) for parts in _PART.iter_unpack(octets)]
