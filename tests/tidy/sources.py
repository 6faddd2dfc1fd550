"""The project's own files, and the source files among them, parsed once."""

from __future__ import annotations

import ast
import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "src/harebell/"
TEXT_SUFFIXES = (".py", ".pyx", ".pxd", ".md", ".toml", ".sh", ".tsv")
_FOREIGN = "src/harebell/management/web/vendor"
"""Files of libraries, which are as they were published."""
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
    return tuple(
        path for path in paths if (ROOT / path).is_file() and not path.is_relative_to(_FOREIGN)
    )


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
