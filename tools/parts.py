"""Run the parts of `make test`, some beside each other, and say at the end how long each took.

    parts.py make "lint types .test-native .test-python" "" ".test-rest" ...

An argument is a line of targets that run one after the other; lines run beside each other, and an
empty argument between two of them waits for everything before it:

    parts.py make  "compute compute"  "wait"   ""   "alone"

                   |compute|compute|
                   |wait         |             |alone|

Of lines beside each other the last one prints as it goes. What a part of another one says is kept
and printed when that part is over, so that no two are mixed.

Every part runs, whatever becomes of the others; it fails when one of them did.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby


@dataclass
class Run:
    """What has happened so far.

    Args:
        make: the command that a target is given to.

    Attributes:
        seconds: how long the parts took that are over, in the order in which they began.
        failed: those that did not succeed.
    """

    make: list[str]
    seconds: dict[str, float | None] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def lines(self, lines: list[list[str]]) -> None:
        """Run lines of parts beside each other."""
        self.seconds.update((part, None) for line in lines for part in line)
        beside = [threading.Thread(target=self._line, args=(line, True)) for line in lines[:-1]]
        for thread in beside:
            thread.start()
        self._line(lines[-1], kept=False)
        for thread in beside:
            thread.join()

    def _line(self, parts: list[str], kept: bool) -> None:
        for part in parts:
            begin = time.monotonic()
            if not (self._said_at_the_end(part) if kept else self._said_at_once(part)):
                self.failed.add(part)
            self.seconds[part] = time.monotonic() - begin

    def _said_at_once(self, part: str) -> bool:
        return subprocess.run([*self.make, part], check=False).returncode == 0

    def _said_at_the_end(self, part: str) -> bool:
        with tempfile.TemporaryFile() as output:
            command = [*self.make, part]
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
            output.seek(0)
            said = output.read().decode(errors="replace")
        print(f"\n== {part}\n{said}", end="", flush=True)
        return done.returncode == 0

    def report(self) -> Iterable[str]:
        """A line for each part."""
        for part, seconds in self.seconds.items():
            yield f"{part}: {seconds or 0:.0f} s{', failed' if part in self.failed else ''}"


def together(arguments: list[str]) -> Iterator[list[list[str]]]:
    """The lines of parts that run beside each other."""
    for present, lines in groupby(arguments, key=bool):
        if present:
            yield [line.split() for line in lines]


def main(arguments: list[str]) -> int:
    """Run everything, print the report to stderr, and return the exit code."""
    run = Run(shlex.split(arguments[0]))
    for lines in together(arguments[1:]):
        run.lines(lines)
    print("\n".join(run.report()), file=sys.stderr)
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
