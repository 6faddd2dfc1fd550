"""The code of a version is imported in parts, with the first connection of that version."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harebell.front import arrival, loading
from harebell.front.versions import OPENERS
from harebell.wire import HEADER_0_9_1
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World

MODULES_PER_PART = 25
_REPORT = """
import sys
import harebell.server.app
from harebell.base.parts import import_next
from harebell.front.loading import PARTS, QUEUES
from harebell.front.versions import OPENERS

version = sys.argv[1]
parts, before, counts = PARTS[version], len(sys.modules), []
assert "harebell.front.amqp_0_9_1" not in sys.modules, "a broker starts without any version"
assert "harebell.model.queue.queue" not in sys.modules, "a broker starts without queues"
while import_next(parts):
    counts.append(len(sys.modules) - before)
    before = len(sys.modules)
OPENERS[version]()
print("opener", len(sys.modules) - before)
before = len(sys.modules)
while import_next(QUEUES):
    counts.append(len(sys.modules) - before)
    before = len(sys.modules)
import harebell.model.queue.factory, harebell.model.lease.leases, harebell.front.operations.consume
print("queues", len(sys.modules) - before)
print("part", max(counts))
"""


def test_every_version_has_parts() -> None:
    assert set(loading.PARTS) == set(OPENERS)


@pytest.mark.parametrize("version", OPENERS)
def test_the_parts_of_a_version_are_small_and_all_it_needs(version: str) -> None:
    run = [sys.executable, "-c", _REPORT, version]
    shown = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    counts = {name: int(count) for name, count in map(str.split, shown.splitlines())}
    assert counts["opener"] == counts["queues"] == 0
    assert counts["part"] <= MODULES_PER_PART


def test_a_connection_waits_while_its_version_is_imported_a_part_in_each_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported: list[str] = []
    missing = ["first", "second", "third"]

    def import_next(parts: tuple[str, ...]) -> bool:
        if parts is not loading.PARTS["0-9-1"] or not missing:
            return False
        imported.append(missing.pop(0))
        return True

    monkeypatch.setattr(arrival, "import_next", import_next)
    monkeypatch.setattr(arrival, "IMPORTED", set())
    world = World()
    world.limit(1_000)
    peer, gone = world.connect(), world.connect("10.0.0.2")
    peer.give(HEADER_0_9_1[:4])
    assert imported == []
    peer.give(HEADER_0_9_1[4:])
    assert imported == ["first"]
    assert peer.connection.held_back
    gone.give(HEADER_0_9_1)
    gone.connection.eof()
    assert imported == ["first"]
    world.next_turn()
    assert imported == ["first", "second"]
    world.turns()
    assert [type(method) for method in peer.methods()] == [m.ConnectionStart]
    assert len(world.registry.connections) == 1
    assert {"0-9-1"} == arrival.IMPORTED
