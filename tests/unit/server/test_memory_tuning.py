"""The heap keeps what is freed: large buffers come back without page faults."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

from harebell.base.heap import keep_heap
from harebell.server.limits import COLLECT_MIDDLE_COLLECTIONS, COLLECT_YOUNG_OBJECTS
from harebell.server.memory_tuning import bound_collections, collect_new


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


LARGE_BODIES = """
import resource
from harebell.base.heap import keep_heap
from harebell.server.limits import HEAP_LOAD_BYTES

assert keep_heap(HEAP_LOAD_BYTES)
size = 16 << 20
def some():
    bodies = [bytearray(size) for _ in range(3)]
    for body in bodies:
        body[:: 4_096] = bytes(size // 4_096)
some()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    some()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_several_bodies_of_16_mib_cost_no_page_faults_either() -> None:
    # In a process of its own: what this one has in its heap may be above them.
    told = subprocess.run(
        [sys.executable, "-c", LARGE_BODIES], capture_output=True, text=True, check=True
    )
    assert int(told.stdout) < 5 * 3 * (16 << 20) // 4096 // 4


A_TURN = 70_000
"""Objects that a collection looks at in about 10 ms."""


@pytest.fixture
def usual() -> Iterator[None]:
    """Give the collector of the tests its settings back."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("usual")
def test_no_collection_looks_at_all_that_a_peer_has_made() -> None:
    looked: list[int] = []

    def watch(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            looked.append(
                sum(len(gc.get_objects(young)) for young in range(info["generation"] + 1))
            )

    bound_collections()
    gc.callbacks.append(watch)
    try:
        kept = [[number] for number in range(400_000)]
    finally:
        gc.callbacks.remove(watch)

    assert len(kept) == 400_000
    assert len(looked) >= 400_000 // (COLLECT_YOUNG_OBJECTS * 2)
    assert max(looked) > COLLECT_YOUNG_OBJECTS * (COLLECT_MIDDLE_COLLECTIONS - 1)
    assert max(looked) <= A_TURN


@pytest.mark.usefixtures("usual")
def test_objects_that_replace_others_are_examined_turn_by_turn() -> None:
    bound_collections()
    old = [[number] for number in range(100_000)]
    gc.collect(1)
    for number in range(100_000):
        # As many go as come, so the interpreter sees no reason to look.
        old[number] = [number]
        if number % 20_000 == 0:
            collect_new()
    assert len(gc.get_objects(0)) + len(gc.get_objects(1)) <= 20_100
