"""The pages about the inside of Harebell name only what exists, and leave out no package."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.docs.markdown import ROOT, Document, read

SOURCE = ROOT / "src/harebell"
ARCHITECTURE = read(ROOT / "docs/ARCHITECTURE.md")
PAGES = [
    ARCHITECTURE,
    read(ROOT / "CONTRIBUTING.md"),
    *(read(path) for path in sorted((ROOT / "docs/internals").glob("*.md"))),
]
LINES = 158
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
BUILT_IN = {"ValueError", "TypeError", "Decimal", "None", "Done", "super", "SO_REUSEPORT"}
ENVIRONMENT = {
    "HAREBELL_BUILD_THREADS",
    "HAREBELL_DAMAGE_SEED",
    "HAREBELL_IMPL",
    "HAREBELL_POWER_SEED",
    "HAREBELL_SIM_SEED",
}
ELSEWHERE = (
    *("quarantine/", "transient/", "kept/", "staging/", "stages/", "definitions.sqlite"),
    *("stores/", "stores/shared.sqlite", "stores/wake-N.sock", "stores/dividing", "internals/"),
)
"""Paths of a data directory and of a backup, and of the pages."""


def room(line: str) -> tuple[int, str] | None:
    """The depth and the name of a directory in the picture of the rooms."""
    found = re.match(r"( +)(\w+)/(?= |$)", line)
    return (len(found[1]) // 2, found[2]) if found else None


def rooms() -> set[str]:
    """The packages of the picture, by their path."""
    picture = next(block for block in ARCHITECTURE.blocks if block.text.startswith("src/harebell/"))
    found: set[str] = set()
    path: list[str] = []
    for line in picture.text.splitlines()[1:]:
        depth, name = room(line) or (0, "")
        if depth:
            path = [*path[: depth - 1], name]
            found.add("/".join(path))
    return found


@cache
def sources() -> str:
    """All Python and Cython code of the package."""
    files = [path for path in SOURCE.rglob("*") if path.suffix in (".py", ".pyx", ".pxd")]
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(files))


@cache
def ends() -> set[str]:
    """The last names of directories, with a `/`, and of files of the package and its tests."""
    return {
        path.name + "/" * path.is_dir()
        for root in (SOURCE, ROOT / "tests")
        for path in root.rglob("*")
    }


def exists(path: str) -> bool:
    return path in ends() or any(
        (base / path).exists() for base in (SOURCE, SOURCE / "management/web", ROOT, ROOT / "docs")
    )


def words(document: Document) -> list[str]:
    return CODE.findall("\n".join(document.prose))


def test_the_picture_of_the_rooms_shows_every_package_and_no_other() -> None:
    packages = {
        str(path.parent.relative_to(SOURCE))
        for path in SOURCE.rglob("__init__.py")
        if path.parent != SOURCE
    }
    # The parts of a queue are described in a page of their own.
    assert rooms() == {name for name in packages if not name.startswith("model/queue/")}


def test_the_architecture_is_read_in_a_few_minutes() -> None:
    lines = ARCHITECTURE.path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LINES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_on_the_page_exists(page: Document) -> None:
    missing = [
        word
        for command in words(page)
        for word in command.split()
        if PATH.fullmatch(word)
        and ("/" in word or word.endswith((".py", ".pyx", ".md")))
        and word not in ELSEWHERE
        and not word.startswith(".")
        and not exists(word)
    ]
    assert not missing, missing


def known(word: str) -> bool:
    """True if a class, member, constant or call is in the code, and for all other words."""
    name, call = word.partition("(")[:2]
    kind, _, member = name.partition(".")
    if re.fullmatch(r"[A-Z][A-Za-z]*[a-z][A-Za-z]*(\.\w+)?", name):
        there = kind in BUILT_IN or re.search(rf"\bclass {kind}\b", sources())
        return bool(there) and (not member or re.search(rf"\b{member}\b", sources()) is not None)
    if re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", name):
        return (
            name in ENVIRONMENT | BUILT_IN or re.search(rf"^{name}\b", sources(), re.M) is not None
        )
    if call and re.fullmatch(r"[a-z_]+", name):
        return name in BUILT_IN or re.search(rf"\bdef {name}\(", sources()) is not None
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_class_and_call_on_the_page_exists(page: Document) -> None:
    missing = [word for word in words(page) if not known(word)]
    assert not missing, missing


def test_a_name_that_does_not_exist_is_noticed() -> None:
    assert not exists("model/stats.py")
    wrong = ("VirtualHostRouter", "Commit.tickets_of", "OUTPUT_HIGHEST_BYTES", "sniffed()")
    assert [word for word in wrong if known(word)] == []
