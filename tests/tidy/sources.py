"""The project's own files, and the source files among them, parsed once."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "src/harebell/"
TEXT_SUFFIXES = (".py", ".pyx", ".pxd", ".md", ".toml", ".sh", ".tsv")
_TEXT_MAX_BYTES = 1_000_000


@functools.cache
def files() -> tuple[Path, ...]:
    """Every file that belongs to the project, also those not committed yet, from its root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = (Path(name) for name in sorted(set(listed.split("\0"))) if name)
    return tuple(path for path in paths if (ROOT / path).is_file())


@dataclass(frozen=True)
class Function:
    """A function or method.

    Args:
        path: its file.
        name: its name, with its class in front.
        first: the line where it begins, after the decorators.
        last: the line where it ends.
    """

    path: Path
    name: str
    first: int
    last: int

    @property
    def lines(self) -> int:
        """How long it is."""
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.path}:{self.first} {self.name}"


def text_of(path: Path) -> str | None:
    """The text of a file; None when it is not text."""
    octets = (ROOT / path).read_bytes()
    if b"\0" in octets or len(octets) > _TEXT_MAX_BYTES:
        return None
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        assert path.suffix not in TEXT_SUFFIXES, f"{path} is not UTF-8"
        return None


def python_files() -> list[Path]:
    """Every Python file."""
    return [path for path in files() if path.suffix == ".py"]


def cython_files() -> list[Path]:
    """Every Cython file."""
    return [path for path in files() if path.suffix in (".pyx", ".pxd")]


@functools.cache
def tree(path: Path) -> ast.Module:
    """A Python file, parsed."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), str(path))


def functions(path: Path) -> list[Function]:
    """The functions of a Python or Cython file."""
    if path.suffix == ".py":
        return list(_python_functions(path))
    return list(_cython_functions(path))


def _python_functions(path: Path) -> list[Function]:
    found: list[Function] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                last = child.end_lineno or child.lineno
                found.append(Function(path, prefix + child.name, child.lineno, last))
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(tree(path), "")
    return found


def _cython_functions(path: Path) -> list[Function]:
    """Functions by their indentation, as far as they have a body."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines):
        word = line.strip()
        if not re.match(r"(def|cdef|cpdef) (?!class )[^=]*\(", word):
            continue
        depth = len(line) - len(line.lstrip())
        header = number
        while header < len(lines) - 1 and not lines[header].rstrip().endswith((":", "\\")):
            if ")" in lines[header] and lines[header].count("(") <= lines[header].count(")"):
                break
            header += 1
        if not lines[header].rstrip().endswith(":"):
            continue
        last = header
        for below in range(header + 1, len(lines)):
            text = lines[below]
            if text.strip() and len(text) - len(text.lstrip()) <= depth:
                break
            if text.strip():
                last = below
        name = word.split("(")[0].split()[-1]
        found.append(Function(path, name, number + 1, last + 1))
    return found
