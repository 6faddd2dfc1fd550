"""`harebell pipeline` in a process of its own, with its JVM: to be killed and started again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import eventually
from tests.running import command, environment
from tests.spark.families import family

PATIENCE_S = 600.0


class Commanded:
    """An action of `harebell pipeline`, as often as it is started.

    Args:
        words: the action and its arguments.
        directory: for its files.

    Attributes:
        registry: where pipelines tell how they are.
    """

    def __init__(self, words: list[str], directory: Path) -> None:
        self._command = [command(), "pipeline", *words]
        self._directory = directory
        self._log = directory / "command.log"
        self.registry = directory / "registry"

    @property
    def said(self) -> str:
        """What it printed since it was started last."""
        return self._log.read_text()

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The command, which is ended together with its JVM at the end."""
        about = environment() | {"HAREBELL_PIPELINES": str(self.registry)}
        with family(self._command, self._log, about, self._directory) as process:
            yield process

    def ended(self, process: subprocess.Popen[bytes]) -> int | None:
        """Its exit code, once it has ended."""
        eventually(lambda: process.poll() is not None, PATIENCE_S)
        return process.returncode
