"""No two modules of the version need each other at their start, whichever comes first.

Compiled modules import each compiled class that their annotations name as well.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import harebell.front.amqp_0_9_1

PACKAGE = Path(harebell.front.amqp_0_9_1.__file__).parent
FORK_EACH = """
import os, sys
import harebell.model.broker, harebell.wire.v09.methods, harebell.wire.v010.commands
for module in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        __import__(module)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{module} cannot be imported first")
"""


def test_modules_of_0_9_1_can_each_be_imported_before_the_others() -> None:
    modules = [f"harebell.front.amqp_0_9_1.{file.stem}" for file in PACKAGE.glob("*.py")]
    assert len(modules) > 5
    done = subprocess.run(
        [sys.executable, "-c", FORK_EACH, *sorted(modules)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
