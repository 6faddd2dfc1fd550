"""The heap keeps what is freed: large buffers come back without page faults."""

from __future__ import annotations

import resource

from harebell.server.heap import keep_heap


def faults() -> int:
    """Page faults of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def test_buffers_of_a_turn_cost_no_page_faults() -> None:
    assert keep_heap()
    size = 1_000_000
    first = bytes(size)
    del first
    before = faults()
    for _ in range(200):
        buffer = bytearray(size)
        buffer[-1] = 1
        del buffer
    pages = 200 * size // 4096
    assert faults() - before < pages // 4
