"""The pickers of the web interface know the settings and arguments that the broker knows."""

from __future__ import annotations

import re
from pathlib import Path

from harebell import management
from harebell.model.queue import arguments
from harebell.model.settings.policy import KEYS

_TEXT = (Path(management.__file__).parent / "web" / "lib" / "arguments.js").read_text()


def _names(name: str) -> set[str]:
    (block,) = re.findall(rf"export const {name} = {{\n(.*?)\n}};", _TEXT, re.DOTALL)
    return set(re.findall(r'^  "?([a-z-]+)"?:', block, re.MULTILINE))


def test_settings_are_those_of_policies() -> None:
    assert _names("SETTINGS") <= set(KEYS)


def test_arguments_are_those_of_queues() -> None:
    own = _names("ARGUMENTS")
    assert own
    assert own <= set(arguments._KNOWN)
    (others,) = re.findall(r"OF_POLICIES_ONLY = \[(.*?)\]", _TEXT)
    shared = {f"x-{name}" for name in _names("SETTINGS") - set(re.findall(r"[a-z-]+", others))}
    assert shared <= set(arguments._KNOWN)
