"""`python -m harebell`, and Ctrl-C at its start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import run_harebell
from tests.running import environment


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harebell", "--version"],
        env=environment(),
        capture_output=True,
        check=True,
    )
    assert done.stdout == run_harebell("--version").stdout


INTERRUPTED_AT = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
import harebell  # its own finder of modules comes first otherwise
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = ["status"]
from harebell.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "name", ["click", "harebell.cli.main", "harebell.cli.verbs.status", "msgspec"]
)
def test_ctrl_c_at_the_start_ends_it_without_a_word(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT.format(name=name)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
