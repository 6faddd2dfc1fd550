"""Run the parts of `make test`, some beside each other, and say at the end how long each took.

    parts.py make "lint types .test-native .test-python" "" ".test-rest" ...

An argument is a line of targets that run one after the other; lines run beside each other, and an
empty argument between two of them waits for everything before it, but for lines that begin with &:

    parts.py make  "&left over"  "compute compute"  "wait"   ""   "alone"

                   |left |over                              |
                   |compute|compute|
                   |wait         |           |alone|

Of lines beside each other the last one prints as it goes. What a part of another one says is kept
and printed when that part is over, so that no two are mixed.

Every part runs, whatever becomes of the others; it fails when one of them did. What pytest says of
the failures is printed once more at the end, after the output of everything else.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import IO

_BEHIND = "&"
"""Begins a line that other lines do not wait for."""
_FAILURES = (" FAILURES ", " ERRORS ")
"""In the lines that pytest draws over what failed."""
_LOOK_SECONDS = 0.05
_MAX_LINES = 300
"""As much of a part's output is repeated, its last lines."""


@dataclass
class Run:
    """What has happened so far.

    Args:
        make: the command that a target is given to.

    Attributes:
        seconds: how long the parts took that are over, in the order in which they began.
        failed: those that did not succeed, with their output.
    """

    make: list[str]
    seconds: dict[str, float | None] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    _behind: list[threading.Thread] = field(default_factory=list)

    def lines(self, lines: list[str]) -> None:
        """Run lines of parts beside each other, and wait for those that do not begin with &."""
        beside: list[threading.Thread] = []
        for line in lines:
            parts = line.lstrip(_BEHIND).split()
            self.seconds.update(dict.fromkeys(parts))
            if line is lines[-1]:
                self._line(parts, kept=False)
                continue
            thread = threading.Thread(target=self._line, args=(parts, True))
            thread.start()
            (self._behind if line.startswith(_BEHIND) else beside).append(thread)
        for thread in beside:
            thread.join()

    def wait(self) -> None:
        """Wait for the lines that begin with &."""
        for thread in self._behind:
            thread.join()

    def _line(self, parts: list[str], kept: bool) -> None:
        for part in parts:
            begin = time.monotonic()
            with tempfile.TemporaryFile() as output:
                code = self._run(part, output, kept)
                output.seek(0)
                said = output.read().decode(errors="replace")
            if kept:
                print(f"\n== {part}\n{said}", end="", flush=True)
            if code:
                self.failed[part] = said
            self.seconds[part] = time.monotonic() - begin

    def _run(self, part: str, output: IO[bytes], kept: bool) -> int:
        """Run a part with its output in a file, and show it as it comes unless it is kept.

        Not through a pipe: a process that a test has left running would hold it open for ever.

        Returns:
            The exit code.
        """
        command, shown = [*self.make, part], 0
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
            if kept:
                return process.wait()
            while (code := process.poll()) is None:
                time.sleep(_LOOK_SECONDS)
                shown += _show(output, shown)
        _show(output, shown)
        return code

    def failures(self) -> Iterable[str]:
        """What was said of each failure; of a part that is not pytest's, its last lines."""
        for part, said in self.failed.items():
            lines = said.splitlines()
            begins = [
                at
                for at, line in enumerate(lines)
                if line.startswith("==") and line.strip("=") in _FAILURES
            ]
            yield f"\n== {part}, failed"
            yield from lines[begins[0] if begins else 0 :][-_MAX_LINES:]

    def report(self) -> Iterable[str]:
        """A line for each part."""
        for part, seconds in self.seconds.items():
            yield f"{part}: {seconds or 0:.0f} s{', failed' if part in self.failed else ''}"


def _show(output: IO[bytes], begin: int) -> int:
    """Print what a file has from an offset on; return how many bytes that were."""
    # The offset of the file itself is that of the process which writes.
    data = os.pread(output.fileno(), os.fstat(output.fileno()).st_size - begin, begin)
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    return len(data)


def together(arguments: list[str]) -> Iterator[list[str]]:
    """The lines of parts that run beside each other."""
    for present, lines in groupby(arguments, key=bool):
        if present:
            yield list(lines)


def main(arguments: list[str]) -> int:
    """Run everything, print the report to stderr, and return the exit code."""
    run = Run(shlex.split(arguments[0]))
    for lines in together(arguments[1:]):
        run.lines(lines)
    run.wait()
    for line in run.failures():
        print(line, flush=True)
    print("\n".join(run.report()), file=sys.stderr)
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
