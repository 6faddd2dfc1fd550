"""Backups of a running broker, for tests: make them, and look at what a target has."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from harebell.management.control.client import ask_command
from tests.patience import SECONDS, eventually
from tests.running import command


def harebell(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [command(), *map(str, words)], capture_output=True, text=True, timeout=SECONDS * 5
    )


def rows(data_dir: Path) -> list[dict[str, Any]]:
    """The backups that the broker knows."""
    return list(ask_command(data_dir, "backups.list", {}))


def start(data_dir: Path, target: Path, **options: int) -> None:
    """Start a backup."""
    ask_command(data_dir, "backups.start", {"target": str(target), "rate": 0, **options})


def ended(data_dir: Path) -> dict[str, Any]:
    """Wait for the end of the last backup; its row."""
    assert eventually(lambda: rows(data_dir)[-1]["ended"], SECONDS * 5)
    return rows(data_dir)[-1]


def back_up(data_dir: Path, target: Path, **options: int) -> dict[str, Any]:
    """Make a backup; its row."""
    start(data_dir, target, **options)
    row = ended(data_dir)
    assert row["state"] == "done", row
    return row


def stored(target: Path) -> set[str]:
    """The paths of all files in a target."""
    found = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    return found - {"LOCK"}


def wanted(target: Path, names: list[str]) -> set[str]:
    """The paths of the files that backups name, and of their manifests."""
    found = {f"{name}/manifest" for name in names}
    for name in names:
        for line in (target / name / "manifest").read_text().splitlines()[1:-1]:
            _, _, place, _, path = line.split(" ")
            found.add(f"{place}/files/{path}")
    return found


def finished(target: Path) -> list[str]:
    """The names of the finished backups."""
    return sorted(path.parent.name for path in target.glob("*/manifest"))
