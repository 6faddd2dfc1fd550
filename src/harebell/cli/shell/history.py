"""The lines that were typed into a shell, for the next one: in a file that only the user reads.

A line that may have a password is offered again in the same shell, and never written. Several
shells write to the file, which is locked while it is shortened or a line is added.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
            lines = self._lines()
            for line in lines[-HISTORY_LINES:]:
                READLINE.add_history(line)
            if len(lines) > 2 * HISTORY_LINES:
                with self._locked():
                    # Again: what other shells have added since stays, too.
                    self._replace(self._lines()[-HISTORY_LINES:])

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
            with self._locked() as number:
                os.write(number, f"{line}\n".encode())

    def _lines(self) -> list[str]:
        return self.file.read_text(encoding="utf-8", errors="replace").splitlines()

    def _replace(self, lines: list[str]) -> None:
        made = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        number = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as out:
            out.write("".join(f"{line}\n" for line in lines))
        made.replace(self.file)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open the file for lines at its end, and lock it."""
        while True:
            number = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.fchmod(number, 0o600)  # an older file may be readable for others
                # Without locks, as on some network file systems, it is written nevertheless.
                with suppress(OSError):
                    fcntl.flock(number, fcntl.LOCK_EX)
                # Another shell may have replaced it before.
                if os.path.samestat(os.fstat(number), self.file.stat()):
                    yield number
                    return
            finally:
                os.close(number)
