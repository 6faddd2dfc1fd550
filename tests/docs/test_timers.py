"""The list of timers and callbacks names every file that makes one, and how it is called."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "internals" / "timers.md"
PACKAGES = (
    *("admin", "auth", "base", "cluster", "config", "front"),
    *("management", "model", "server", "store"),
)
WAYS = {
    "T": r"\.timer\(",
    "L": r"\b_?(?:work|turns)\.later\(",
    "C": r"awaiting\.append\(",
    "A": r"\.call_(?:later|at)\(",
    "N": r"\.call_soon(?:_threadsafe)?\(",
    "F": r"\.add_done_callback\(",
    "K": r"\bcreate_task\(|\bensure_future\(|\brun_coroutine_threadsafe\(",
    "H": r"\b(?:Thread|BatchThread|SyncThread|ThreadPoolExecutor)\("
    r"|\.run_in_executor\(|\bthread\.submit\(",
    "D": r"\.add_(?:reader|writer)\(",
    "S": r"\.add_signal_handler\(",
}
_ROW = re.compile(r"\| `([\w/]+\.py)` \| ([A-Z ]+) \| (.+) \|")


def in_the_code() -> dict[str, set[str]]:
    """The files that make a timer or a callback, with the ways in which they are called."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / "src" / "harebell" / package).rglob("*.py")):
            text = path.read_text()
            ways = {way for way, pattern in WAYS.items() if re.search(pattern, text)}
            if ways:
                found[str(path.relative_to(ROOT / "src" / "harebell"))] = ways
    return found


def test_the_list_of_timers_and_callbacks_is_that_of_the_code() -> None:
    listed = {row[1]: set(row[2].split()) for row in _ROW.finditer(PAGE.read_text())}
    assert listed == in_the_code()


def test_every_part_of_the_server_says_what_holds_when_it_raises() -> None:
    server = PAGE.read_text().partition("## In the server")[2]
    for row in _ROW.finditer(server):
        assert row[3].count(" | ") == 1, row[0]
