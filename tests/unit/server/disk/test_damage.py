"""Damage is counted where it is reported."""

from __future__ import annotations

from harebell.server.disk.damage import Damage
from harebell.store.memory_files import MemoryFiles


def test_reported_errors_count_as_damage_and_warnings_do_not() -> None:
    said: list[tuple[str, str]] = []
    damage = Damage(lambda level, text: said.append((level, text)))
    files = MemoryFiles()
    damage.report("warning", "a torn tail is cut off")
    assert damage.overview(files) == {
        "damage_reports": 0,
        "damage_last": "",
        "quarantined_files": 0,
    }
    damage.report("error", "one")
    damage.report("error", "two")
    files.make_directory("quarantine")
    files.open("quarantine/copy.bin", create=True).close()
    assert damage.overview(files) == {
        "damage_reports": 2,
        "damage_last": "two",
        "quarantined_files": 1,
    }
    assert said == [("warning", "a torn tail is cut off"), ("error", "one"), ("error", "two")]
