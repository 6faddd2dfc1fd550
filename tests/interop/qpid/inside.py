"""Runs modules of Qpid's tests where `qpid` can be imported: broker, then modules.

Prints what became of each test, as JSON: "passed", or the last line of what went wrong.
"""

from __future__ import annotations

import importlib
import json
import sys
import unittest
from types import ModuleType
from typing import Any


class Config:
    """What the tests want to know.

    Args:
        broker: as Qpid writes addresses: `user/password@host:port`.
    """

    def __init__(self, broker: str) -> None:
        self.broker = importlib.import_module("qpid.util").URL(broker)
        self.defines: dict[str, str] = {}


def run(module: ModuleType, config: Config) -> dict[str, str]:
    """What became of each test of a module."""
    outcomes = {}
    for kind in vars(module).values():
        if not isinstance(kind, type) or not issubclass(kind, unittest.TestCase):
            continue
        if kind.__module__ != module.__name__:
            continue
        for name in unittest.TestLoader().getTestCaseNames(kind):
            case: Any = kind(name)
            case.configure(config)
            result = unittest.TestResult()
            case.run(result)
            bad = [*result.errors, *result.failures]
            outcome = bad[0][1].strip().splitlines()[-1] if bad else "passed"
            outcomes[f"{kind.__name__}.{name}"] = outcome
    return outcomes


if __name__ == "__main__":
    broker, *names = sys.argv[1:]
    found: dict[str, str] = {}
    for each in names:
        found |= run(importlib.import_module(each), Config(broker))
    sys.stdout.write(json.dumps(found) + "\n")
