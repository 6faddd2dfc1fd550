"""A line about an argument says more than its name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.sources import SOURCE, files, text_of

_ENTRY = re.compile(r"\s+([a-z_][a-z0-9_]*): ((?:the|its|an?|this) [^.;,:]*)\.\s*")
_EMPTY = {"the", "its", "a", "an", "this", "of", "that"}


def repeats_its_name(line: str) -> bool:
    """Whether a line of a docstring, such as "queue: the queue.", has no word but its name."""
    entry = _ENTRY.fullmatch(line)
    if entry is None:
        return False
    name = {word.rstrip("s") for word in entry[1].split("_")}
    said = set(re.findall(r"[a-z0-9]+", entry[2].lower())) - _EMPTY
    return {word.rstrip("s") for word in said} <= name


@pytest.mark.parametrize(
    ("line", "repeats"),
    [
        ("        queue: the queue.", True),
        ("        routing_key: its routing key.", True),
        ("        branch_id: the id of the branch.", True),
        ("        queue: the name of the queue.", False),
        ("        queue: the queue; it has to exist.", False),
        ("    return value: the value", False),
    ],
)
def test_a_line_that_only_repeats_its_name_is_found(line: str, repeats: bool) -> None:
    assert repeats_its_name(line) is repeats


def test_no_line_about_an_argument_only_repeats_its_name() -> None:
    sources: list[Path] = [
        path for path in files() if str(path).startswith(SOURCE) and path.suffix in (".py", ".pyx")
    ]
    found = [
        f"{path}:{number}: say type, unit or meaning, or remove the line: {line.strip()}"
        for path in sources
        for number, line in enumerate((text_of(path) or "").splitlines(), 1)
        if repeats_its_name(line)
    ]
    assert not found, "\n".join(found)
