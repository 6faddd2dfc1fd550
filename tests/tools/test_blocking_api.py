"""The blocking API of the client is made from the asyncio API by `tools/blocking_api.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_blocking_api_is_made_from_the_asyncio_api_as_it_is_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    made = __import__("blocking_api").blocking_api()
    monkeypatch.delitem(sys.modules, "blocking_api")
    old = [path.name for path, text in made.items() if path.read_text() != text]
    assert old == [], "run .venv/bin/python tools/blocking_api.py"
