"""The page of state machines is the one that the tables make."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.markdown import ROOT


def test_the_page_of_states_is_drawn_from_the_tables() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "state_pages.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
