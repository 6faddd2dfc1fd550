"""The heap keeps what is freed: large buffers come back without page faults."""

from __future__ import annotations

import resource

from harebell.base.limits import HEAP_TRIM_BYTES
from harebell.server.heap import Trimmer, keep_heap


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


def test_memory_is_given_back_when_much_has_gone_and_things_are_quiet() -> None:
    trimmer = Trimmer()
    assert not trimmer.look(0)
    assert not trimmer.look(3 * HEAP_TRIM_BYTES)
    assert not trimmer.look(2 * HEAP_TRIM_BYTES), "more may go in the next turn"
    assert trimmer.look(2 * HEAP_TRIM_BYTES)
    assert not trimmer.look(2 * HEAP_TRIM_BYTES), "it was given back already"
    assert not trimmer.look(0)
    assert trimmer.look(0)
