"""Rows of a log are compressed where that is worth it, and damage is found."""

from __future__ import annotations

import json
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import StoreError
from harebell.store.journal.changes import WRITE, Change, decode, encode, plain
from harebell.store.journal.row_compression import COMPRESSED, RowCompressor
from harebell.store.limits import COMPRESS_MIN_BYTES, COMPRESS_SHARE, COMPRESS_SKIPPED_ROWS

WHERE = "row 7 of the log"


def row_of(data: bytes) -> bytes:
    return encode([Change(WRITE, 5, "queues/a/1.seg", data)])


def orders(count: int) -> bytes:
    return b"".join(
        json.dumps({"order": number, "customer": f"c{number % 7}", "paid": True}).encode()
        for number in range(count)
    )


def test_json_gets_a_fraction_of_its_size_and_comes_back() -> None:
    row = row_of(orders(1_000))
    stored = RowCompressor().compress(row)
    assert stored[0] == COMPRESSED
    assert len(stored) < len(row) / 3
    assert plain(stored, WHERE) == row
    (change,) = decode(plain(stored, WHERE), WHERE)
    assert bytes(change.data) == orders(1_000)


@given(st.binary(max_size=100), st.integers(0, 500))
def test_every_row_comes_back(data: bytes, times: int) -> None:
    row = row_of(data * times)
    assert plain(RowCompressor().compress(row), WHERE) == row


def test_a_small_row_is_left_as_it_is() -> None:
    row = row_of(bytes(COMPRESS_MIN_BYTES - 100))
    assert RowCompressor().compress(row) is row


def test_rows_that_do_not_get_smaller_are_rarely_tried() -> None:
    compressor = RowCompressor()
    noise, words = row_of(Random(1).randbytes(20_000)), row_of(orders(500))
    assert compressor.compress(noise) is noise
    for _ in range(COMPRESS_SKIPPED_ROWS):
        assert compressor.compress(words) is words
    assert len(compressor.compress(words)) < len(words)
    assert compressor.compress(noise) is noise


def test_a_row_that_gets_hardly_smaller_is_left_as_it_is() -> None:
    part = 20_000
    row = row_of(Random(1).randbytes(int(part * (COMPRESS_SHARE + 0.05))) + bytes(part // 8))
    assert RowCompressor().compress(row) is row


def test_every_flipped_bit_and_missing_byte_is_found() -> None:
    stored = RowCompressor().compress(row_of(bytes(range(256)) * 20))
    for at in range(4, len(stored)):
        damaged = bytearray(stored)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(StoreError, match="row 7 of the log is damaged"):
            plain(bytes(damaged), WHERE)
        with pytest.raises(StoreError, match="row 7 of the log is damaged"):
            plain(stored[:at], WHERE)


def test_a_broker_without_lz4_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    with pytest.raises(StoreError, match=r"needs LZ4 .*: pip install 'harebell\[postgresql\]'$"):
        RowCompressor()
