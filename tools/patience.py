"""Commands that fetch something over the network, which may fail for reasons of its own.

They are tried a few times, with longer and longer pauses: a mirror that is busy, or a name that is
not resolved for a moment, is no reason to give up. Needs nothing but the standard library.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

PAUSES_SECONDS = (5, 15, 45)


def fetch(
    command: list[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command until it works, a few times at most; everything it said is in its output."""
    for pause in (*PAUSES_SECONDS, None):
        done = subprocess.run(
            command,
            cwd=cwd,
            env=dict(os.environ if env is None else env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode == 0 or pause is None:
            break
        last = (done.stdout.strip().splitlines() or ["it said nothing"])[-1]
        print(f"   failed ({last}); trying again in {pause} s", flush=True)
        time.sleep(pause)
    return done
