"""Run a benchmark as its users do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def ran(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m` of the repository; its output."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
