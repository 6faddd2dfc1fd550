"""Every row of the table "Opening" of the disk format: all combinations of what a segment may be.

A log has two segments; one of them, the older or the newest, has a header that is good, damaged or
another log's, and a second record that is good, does not fit, has a wrong checksum or is out of
order, with good records after it or not.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from harebell.kernels.records import RecordBuffer
from harebell.store.log.segment import HEADER_BYTES, encode_header, file_name, seed_of
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.sim.logs import START_MS, Accounts, Life, make_message, number_of

IDENTITY = "ab" * 16
OTHER = "cd" * 16
HEADERS = ("good", "damaged", "another log's")
RECORDS = ("good", "does not fit", "wrong checksum", "out of order")
MESSAGES = 4
SECOND = 1


@dataclass(frozen=True)
class Combination:
    """One row, spelled out.

    Args:
        header: how the segment's header is.
        record: how its second record is.
        first_good: whether its first record is good.
        followed: whether good records follow the second.
        newest: whether it is the newest segment.
    """

    header: str
    record: str
    first_good: bool
    followed: bool
    newest: bool


COMBINATIONS = [
    Combination(*values)
    for values in itertools.product(HEADERS, RECORDS, (True, False), (True, False), (True, False))
]


def _segment(first: int, combination: Combination | None) -> tuple[bytes, set[int], int]:
    """A segment's octets, the positions that are good in it, where the first bad octets begin."""
    seed, rng = seed_of(IDENTITY), Random(first)
    buffer = RecordBuffer(HEADER_BYTES, seed)
    header = encode_header(IDENTITY, first, START_MS, 0)
    offsets = []
    for index in range(MESSAGES):
        bad = combination is not None and index == SECOND
        position = first + index
        if bad and combination is not None and combination.record == "out of order":
            position = first + 1000
        message = make_message(first + index, 40, True, rng)
        offsets.append(buffer.message(position, START_MS, message, True))
    content = bytearray(header + buffer.take())
    good = {first + index for index in range(MESSAGES)}
    if combination is None:
        return bytes(content), good, len(content)
    bad_from = len(content)
    if not combination.followed:
        del content[offsets[SECOND + 1] :]
        good -= {first + index for index in range(SECOND + 1, MESSAGES)}
        bad_from = len(content)
    if combination.record != "good":
        good.discard(first + SECOND)
        bad_from = offsets[SECOND]
        if combination.record == "does not fit":
            content[bad_from : bad_from + 4] = (1 << 30).to_bytes(4, "little")
        elif combination.record == "wrong checksum":
            content[bad_from + 40] ^= 1
    if not combination.first_good:
        good.discard(first)
        bad_from = offsets[0]
        content[bad_from + 40] ^= 1
    if combination.header == "damaged":
        content[20] ^= 1
    elif combination.header == "another log's":
        content[:HEADER_BYTES] = encode_header(OTHER, first, START_MS, 0)
    return bytes(content), good, bad_from


def _open(disk: SimDisk) -> tuple[set[int], list[tuple[str, str]], int]:
    """The messages that are found, by their positions, what is reported, and what is counted."""
    life = Life(disk, SimDefinitions(disk), Accounts(), 1)
    log = life.store.open_log(IDENTITY, durable=True)
    found = set()
    position = log.first()
    while position < log.end():
        message = log.read(position)
        assert message is not None
        assert number_of(message) == position
        found.add(position)
        position = log.next(position + 1)
    return found, life.reports, log.live()


@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
def test_a_segment_is_treated_as_the_table_says(combination: Combination) -> None:
    first = MESSAGES if combination.newest else 0
    odd, good, bad_from = _segment(first, combination)
    whole, others, _ = _segment(MESSAGES - first, None)
    disk = SimDisk()
    disk.make_directory(f"queues/{IDENTITY}")
    path = f"queues/{IDENTITY}/{file_name(first)}"
    disk.replace(path, odd)
    disk.replace(f"queues/{IDENTITY}/{file_name(MESSAGES - first)}", whole)

    moved = combination.header == "another log's" or (combination.header == "damaged" and not good)
    found, reports, live = _open(disk)
    assert found == others | (set() if moved else good)
    assert live == len(found)
    kept = b"|".join(disk.content(name) for name in disk.paths("quarantine")) if reports else b""
    never_finished = moved and combination.header == "damaged" and combination.newest
    last = not any(position > first + SECOND for position in good)
    torn = _is_torn(combination, good, first, last)
    if moved:
        assert path not in disk.paths()
        assert odd in kept
        assert [level for level, _ in reports] == ["warning" if never_finished else "error"]
    elif bad_from == len(odd) and combination.header == "good":
        assert reports == []
        assert disk.content(path) == odd
    else:
        assert reports
        assert any(level == "error" for level, _ in reports) or torn
        assert _bad_octets(odd, combination, bad_from) in kept
        assert (len(disk.content(path)) < len(odd)) == torn
    before = {name: disk.content(name) for name in disk.paths()}
    again = _open(disk)
    assert again[0] == found
    assert {name: disk.content(name) for name in disk.paths()} == before


def _is_torn(combination: Combination, good: set[int], first: int, last: bool) -> bool:
    """Whether the newest segment ends with something bad."""
    second = combination.record != "good"
    alone = not combination.first_good and not good
    return combination.newest and bool((last and second) or alone)


def _bad_octets(odd: bytes, combination: Combination, bad_from: int) -> bytes:
    """Some octets that are bad."""
    if combination.header == "damaged":
        return odd[:HEADER_BYTES]
    return odd[bad_from : bad_from + 48]
