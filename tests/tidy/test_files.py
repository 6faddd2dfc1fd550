"""Files are short, documented, and named after something that is tested."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.tidy.reviewed import LONG_FILES, UNMIRRORED
from tests.tidy.sources import (
    ROOT,
    SOURCE,
    TEXT_SUFFIXES,
    cython_files,
    files,
    python_files,
    text_of,
    tree,
)

SOURCE_LINES = 700
TEST_LINES = 800
COLUMNS = 100


def limit(path: Path) -> int:
    return TEST_LINES if path.parts[0] == "tests" else SOURCE_LINES


def lines(path: Path) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def test_files_are_short() -> None:
    long = [
        f"{path}: {lines(path)} lines, {limit(path)} allowed"
        for path in [*python_files(), *cython_files()]
        if lines(path) > limit(path) and str(path) not in LONG_FILES
    ]
    assert not long, "\n".join(long)


def test_the_list_of_long_files_is_needed() -> None:
    for name in LONG_FILES:
        assert lines(Path(name)) > limit(Path(name)), f"{name} is short again: take it off the list"


def test_cython_lines_are_short() -> None:
    # ruff sees to the Python files.
    wide = [
        f"{path}:{number}"
        for path in cython_files()
        for number, line in enumerate((ROOT / path).read_text("utf-8").splitlines(), start=1)
        if len(line) > COLUMNS
    ]
    assert not wide, "\n".join(wide)


def test_every_module_says_why_it_exists() -> None:
    silent = [
        str(path)
        for path in python_files()
        if tree(path).body and not (ast.get_docstring(tree(path)) or "").strip()
    ]
    silent += [
        str(path)
        for path in cython_files()
        if path.suffix == ".pyx"
        and not any(
            line.startswith('"""') for line in (ROOT / path).read_text("utf-8").splitlines()[:6]
        )
    ]
    assert not silent, "\n".join(silent)


def has_code(path: Path) -> bool:
    """Whether a module does anything but import and describe itself."""
    quiet = (ast.Import, ast.ImportFrom, ast.Expr)
    return any(not isinstance(node, quiet) and not _is_all(node) for node in tree(path).body)


def _is_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def modules() -> list[str]:
    """Every module of the package with code in it, kernels included, by its path in the package."""
    python = [path for path in python_files() if str(path).startswith(SOURCE) and has_code(path)]
    kernels = [path for path in cython_files() if path.suffix == ".pyx"]
    found = {str(path.with_suffix("")).removeprefix(SOURCE) for path in [*python, *kernels]}
    return sorted(found)


def mirror(module: str) -> str:
    """Where the tests of a module are; a package's own code is tested by any file of its folder."""
    parent, _, name = module.rpartition("/")
    folder = f"tests/unit/{parent}/" if parent else "tests/unit/"
    return f"{folder}test_{'*' if name == '__init__' else name.strip('_')}.py"


def has_mirror(module: str) -> bool:
    return any(ROOT.glob(mirror(module)))


def excused(module: str) -> bool:
    """Whether a module, or the folder it is in, is on the list of those tested elsewhere."""
    folders = [parent.as_posix() + "/" for parent in Path(module).parents]
    return module in UNMIRRORED or any(folder in UNMIRRORED for folder in folders)


def test_every_module_has_its_test_file() -> None:
    missing = [
        f"{module} has no {mirror(module)}"
        for module in modules()
        if not has_mirror(module) and not excused(module)
    ]
    assert not missing, "\n".join(missing)


def test_the_list_of_modules_without_a_test_file_is_needed() -> None:
    every = modules()
    for entry, (tests, reason) in UNMIRRORED.items():
        named = [
            each for each in every if each == entry or each.startswith(entry.rstrip("/") + "/")
        ]
        assert named, f"{entry} is gone: take it off the list"
        assert not all(map(has_mirror, named)), f"{entry} has its test file now"
        assert any(ROOT.glob(tests)), f"{entry} is said to be tested by {tests}"
        assert len(reason.split()) >= 3, f"{entry} needs a reason"


@pytest.mark.parametrize("suffix", TEXT_SUFFIXES)
def test_text_files_end_with_one_newline_and_have_no_trailing_spaces(suffix: str) -> None:
    for path in files():
        text = text_of(path) if path.suffix == suffix else None
        if text:
            assert text.endswith("\n"), f"{path} does not end with a newline"
            assert not text.endswith("\n\n"), f"{path} ends with an empty line"
            for number, line in enumerate(text.split("\n"), start=1):
                assert line == line.rstrip(" \r"), f"{path}:{number} ends with a space"
