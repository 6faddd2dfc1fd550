"""Files are documented, and their tests are found where the package has them."""

from __future__ import annotations

import ast

import pytest

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

COLUMNS = 100


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


def test_directories_of_unit_tests_mirror_directories_of_the_package() -> None:
    # A file of tests may cover several modules. Its directory names the package that it tests.
    packages = {path.parent for path in [*python_files(), *cython_files()]}
    strays = {
        path.parent
        for path in python_files()
        if path.is_relative_to("tests/unit")
        and SOURCE / path.parent.relative_to("tests/unit") not in packages
    }
    assert not strays, f"no such packages: {sorted(map(str, strays))}"


@pytest.mark.parametrize("suffix", TEXT_SUFFIXES)
def test_text_files_end_with_one_newline_and_have_no_trailing_spaces(suffix: str) -> None:
    for path in files():
        text = text_of(path) if path.suffix == suffix else None
        if text:
            assert text.endswith("\n"), f"{path} does not end with a newline"
            assert not text.endswith("\n\n"), f"{path} ends with an empty line"
            for number, line in enumerate(text.split("\n"), start=1):
                assert line == line.rstrip(" \r"), f"{path}:{number} ends with a space"
