"""The files that Harebell's wheels, its source distribution and its Debian package are made of."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUBS = "src/harebell/wire/*/*.pyi"
"""What `tools/setup.sh` has written for type checkers."""
KEPT = (
    *("src", "setup.py", "tools/declarations.py", "MANIFEST.in"),
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"),
)


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def copy_sources(target: Path) -> None:
    """Copy the tracked ones and the stubs, and write down their commit for `harebell --version`.

    Raises:
        subprocess.CalledProcessError: this is no clone; git has said so.
        OSError: git is missing, or the target cannot be written.
    """
    stubs = (str(path.relative_to(ROOT)) for path in ROOT.glob(STUBS))
    for name in filter(None, (*_git("ls-files", "-z", *KEPT).split("\0"), *stubs)):
        copied = target / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copied)
    (target / "src" / "harebell" / "COMMIT").write_text(_git("rev-parse", "HEAD"))
