"""Where the memory is that sockets are read into."""

from __future__ import annotations

import ctypes

from harebell.base.heap import read_buffer
from harebell.base.limits import READ_BUFFER_BYTES


def test_reads_go_to_a_place_that_begins_at_a_page() -> None:
    for _ in range(8):
        memory = read_buffer(READ_BUFFER_BYTES)
        assert len(memory) == READ_BUFFER_BYTES
        assert not memory.readonly
        assert ctypes.addressof(ctypes.c_char.from_buffer(memory)) % 4_096 == 0
