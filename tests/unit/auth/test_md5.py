"""MD5 in pieces: the library's digests, from a state in the middle."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.auth.md5 import BLOCK_BYTES, absorbed, finished


@given(block=st.binary(min_size=BLOCK_BYTES, max_size=BLOCK_BYTES), rest=st.binary(max_size=300))
def test_a_block_and_the_rest_have_the_librarys_digest(block: bytes, rest: bytes) -> None:
    assert finished(absorbed(block), rest) == hashlib.md5(block + rest).digest()


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 128])
def test_the_padding_is_right_wherever_the_text_ends(size: int) -> None:
    first, second = bytes(range(64)), bytes(64)
    state = absorbed(second, absorbed(first))
    expected = hashlib.md5(first + second + b"x" * size).digest()
    assert finished(state, b"x" * size, 2 * BLOCK_BYTES) == expected
