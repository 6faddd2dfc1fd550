"""The commit that this program was built from, as far as it is known."""

from __future__ import annotations

from pathlib import Path

SHOWN_DIGITS = 8
_PACKAGE = Path(__file__).resolve().parent.parent
_WRITTEN = _PACKAGE / "COMMIT"
"""What a build writes: setup.py in a clone, tools/sources.py in a copy."""


def commit() -> str:
    """Return the first digits of the commit; "" for a build without Git."""
    try:
        return _WRITTEN.read_text(encoding="ascii").strip()[:SHOWN_DIGITS]
    except OSError:
        return _of_clone(_PACKAGE.parent.parent / ".git")[:SHOWN_DIGITS]


def _of_clone(git: Path) -> str:
    """Return the commit that a clone has checked out, from Git's own files."""
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        if (git / name).is_file():
            return (git / name).read_text(encoding="ascii").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return next((line.partition(" ")[0] for line in packed if line.endswith(f" {name}")), "")
