"""Run a simulation with the modules in Python, to compare it with the compiled ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def trace_in_python(call: str) -> str:
    """The trace of a run, such as `simulate(7, 10.0)`, of the module `tests.sim.scenario`."""
    name = call.partition("(")[0]
    done = subprocess.run(
        [sys.executable, "-c", f"from tests.sim.scenario import {name}; print({call}.trace)"],
        cwd=_ROOT,
        env={**os.environ, "HAREBELL_IMPL": "python"},
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    return done.stdout.split()[-1]
