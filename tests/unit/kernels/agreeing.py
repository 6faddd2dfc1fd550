"""Programs whose output must be the same with the compiled kernels and with those in Python.

A program imports `RandomProperties` from here, so it sees the same messages in both runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

_ROOT = Path(__file__).parents[3]
_WIDTHS = dict(zip(b"tbBsuIilLfdDTV", (1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 5, 8, 0), strict=True))
"""Sizes of the values of header types that have one."""


def printed_by_both(program: str) -> list[str]:
    """Run a program with both; return the words that it prints after `impl.chosen()`.

    Raises:
        AssertionError: it fails, or does not print the same.
    """
    said: dict[str, list[str]] = {}
    for wanted in ("native", "python"):
        ran = subprocess.run(
            [sys.executable, "-c", program],
            cwd=_ROOT,
            env={**os.environ, "HAREBELL_IMPL": wanted},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        chosen, *said[wanted] = ran.stdout.split()
        assert chosen == wanted
    assert said["native"] == said["python"]
    return said["python"]


class RandomProperties:
    """Encoded property lists with headers of every type.

    Args:
        rng: decides everything.
        names: of headers; one may be no UTF-8.
        texts: of headers and properties; one may be no UTF-8.
        cut: how many of a hundred header tables are cut off.
    """

    def __init__(
        self, rng: Random, names: Sequence[bytes], texts: Sequence[bytes], cut: int = 0
    ) -> None:
        self._rng = rng
        self._names = names
        self._texts = texts
        self._cut = cut

    def raw(self) -> bytes:
        """A property list."""
        rng = self._rng
        flags = rng.choice((0, 0xFFFC, rng.randrange(1 << 14) << 2))
        parts = [flags.to_bytes(2)]
        for number in range(14):
            if not flags & (0x8000 >> number):
                continue
            if number == 2:
                parts.append(_sized(self._table(1), 4))
            elif number in (3, 4):
                parts.append(rng.randbytes(1))
            elif number == 9:
                parts.append(rng.choice((rng.randbytes(8), (1357041600).to_bytes(8))))
            else:
                parts.append(_sized(rng.choice(self._texts)[:255], 1))
        return b"".join(parts)

    def _table(self, depth: int) -> bytes:
        rng = self._rng
        pairs = range(rng.choice((0, 1, 2, 3, 6, 20)))
        made = b"".join(_sized(rng.choice(self._names), 1) + self._value(depth) for _ in pairs)
        return made[: rng.randrange(len(made) + 1)] if rng.randrange(100) < self._cut else made

    def _value(self, depth: int) -> bytes:
        rng = self._rng
        tag = rng.choice(b"tbBsuIilLfdDSxTVFA" if depth < 3 else b"tbBsuIilLfdDSxTV")
        if tag in _WIDTHS:
            return bytes([tag]) + rng.randbytes(_WIDTHS[tag])
        if tag in b"Sx":
            return bytes([tag]) + _sized(rng.choice(self._texts), 4)
        if tag == ord("F"):
            return b"F" + _sized(self._table(depth + 1), 4)
        items = b"".join(self._value(depth + 1) for _ in range(rng.randrange(4)))
        return b"A" + _sized(items, 4)


def _sized(data: bytes, width: int) -> bytes:
    return len(data).to_bytes(width) + data
