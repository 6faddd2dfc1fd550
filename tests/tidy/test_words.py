"""Words that do not belong into the project: notes to self, places on somebody's machine, mocks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.tidy.sources import SOURCE, files, python_files, text_of, tree

THIS = Path("tests/tidy/test_words.py")
NOTES = re.compile(r"\b(FIXME|XXX|HACK|TODO)\b")
PLACES = re.compile(r"(?<![\w.:~-])/(?:work|root|home|opt|mnt|Users)/\w+")
REGISTRIES = re.compile(r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|crates\.io")
MOCKS = ("unittest.mock", "mock", "pytest_mock")
SKIPS = ("pytest.skip", "pytest.importorskip", "pytest.mark.skip", "pytest.mark.skipif")
WORDS_IN_A_NAME = 3
REPLACED = {
    r"\bwhoever\b": "name the role: the client, the user, the operator",
    r"\bnobody's\b": "say that no client or queue has it",
    r"\blodger": "adapter",
    r"\bletter chain": "dead-letter scheduler",
    r"\bgoes round\b": "forms a cycle",
    r"\b(is|are) told\b": "gets, is notified",
    r"\bwhat is too much\b": "what exceeds the limit",
    r"\bnever not at all\b": "at least once",
    r"\bputs? up with\b": "accepts, has a limit of",
    r"\bsits? on\b": "uses",
    r"\banew\b": "again",
    r"\boutlives?\b": "survives",
    r"\bheeds?\b": "obeys, applies",
    r"\bmends?\b": "corrects, fixes, repairs",
    r"\bvouch": "verifies",
    r"\bqueue kind\b": "queue type",
    r"\bsub-?scribers?\b(?!\()": "consumer",
    r"\bfolders?\b": "directory",
}
"""Words that pages do not use, and what to write instead: see docs/GLOSSARY.md."""
UNREVISED = ("docs/GLOSSARY.md", "docs/internals/track-record.md")
"""Pages that quote old words, or keep records as they were written."""


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:80]}"
        for path in files()
        if path != THIS
        for number, line in enumerate((text_of(path) or "").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_file_has_a_note_in_place_of_work() -> None:
    found = lines_with(NOTES)
    assert not found, "\n".join(found)


def test_no_file_names_a_place_on_somebody_s_machine() -> None:
    found = lines_with(PLACES)
    assert not found, "\n".join(found)


def test_no_file_names_a_package_registry() -> None:
    found = lines_with(REGISTRIES)
    assert not found, "\n".join(found)


def test_nothing_of_ours_is_mocked() -> None:
    mocking = [
        f"{path}:{node.lineno}"
        for path in python_files()
        for node in ast.walk(tree(path))
        for name in imported(node)
        if name in MOCKS or name.startswith("unittest.mock.")
    ]
    assert not mocking, "\n".join(mocking)


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def test_no_test_is_skipped() -> None:
    skipping = [
        f"{path}:{node.lineno}"
        for path in python_files()
        if path.parts[0] == "tests"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in SKIPS
    ]
    assert not skipping, "\n".join(skipping)


def test_the_names_of_tests_are_sentences() -> None:
    short = [
        f"{path}:{node.lineno} {node.name}"
        for path in python_files()
        if path.parts[0] == "tests" and path.name.startswith("test_")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(node.name.removeprefix("test_").split("_")) < WORDS_IN_A_NAME
    ]
    assert not short, "\n".join(short)


def test_the_package_names_roles_and_not_persons() -> None:
    found = [
        f"{path}:{number}: {word[0]!r}; name the role: the client, the user, no queue"
        for path in files()
        if str(path).startswith(SOURCE) and path.suffix in (".py", ".pyx", ".pxd")
        for number, line in enumerate((text_of(path) or "").splitlines(), start=1)
        if (word := re.search(r"\b(?:nobody|whoever)\b", line, re.IGNORECASE))
    ]
    assert not found, "\n".join(found)


def test_pages_use_the_words_of_the_glossary() -> None:
    pages = [path for path in files() if path.suffix == ".md" and path.parts[0] != "src"]
    found = [
        f"{path}:{number}: {old!r}; write: {new}"
        for path in pages
        if str(path) not in UNREVISED
        for number, line in enumerate((text_of(path) or "").splitlines(), start=1)
        for old, new in REPLACED.items()
        if re.search(old, line, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)
