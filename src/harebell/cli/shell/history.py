"""The lines that were typed into a shell, for the next one: in a file that only the user reads.

A line that may have a password is offered again in the same shell, and never written.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from harebell.cli.limits import HISTORY_LINES

try:
    import readline as _readline
except ImportError:  # a Python without it edits no lines
    _readline = None  # type: ignore[assignment]

READLINE: ModuleType | None = _readline
_SECRET = re.compile(r"://[^/\s@]*:[^\s@]*@|passw|passphrase|secret|token|credential", re.I)


class History:
    """The lines of earlier shells and of this one.

    Args:
        name: of the file, below XDG_STATE_HOME, else below ~/.local/state.
    """

    def __init__(self, name: str) -> None:
        base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
        self.file = Path(base) / "harebell" / name

    def begin(self) -> None:
        """Offer the lines of earlier shells; a home that cannot be read or written has none."""
        if READLINE is None:
            return
        READLINE.set_auto_history(False)
        with suppress(OSError):
            lines = self.file.read_text(encoding="utf-8", errors="replace").splitlines()
            for line in lines[-HISTORY_LINES:]:
                READLINE.add_history(line)
            if len(lines) > 2 * HISTORY_LINES:
                self._replace(lines[-HISTORY_LINES:])

    def add(self, line: str, *, secret: bool = False) -> None:
        """Remember a line.

        Args:
            line: what was typed.
            secret: whether it may have a password, so that it is not written.
        """
        if READLINE is None or not line.strip():
            return
        READLINE.add_history(line)
        if secret or _SECRET.search(line) or not line.isprintable():
            return
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write(self.file, f"{line}\n", os.O_APPEND)

    def _replace(self, lines: list[str]) -> None:
        made = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        self._write(made, "".join(f"{line}\n" for line in lines), os.O_TRUNC)
        made.replace(self.file)

    @staticmethod
    def _write(file: Path, text: str, how: int) -> None:
        number = os.open(file, os.O_WRONLY | os.O_CREAT | how, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as out:
            os.fchmod(number, 0o600)  # an older file may be readable for others
            out.write(text)
