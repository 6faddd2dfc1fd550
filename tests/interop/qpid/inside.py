"""Runs modules of Qpid's tests where `qpid` can be imported: broker, then modules.

With `--amqp 0-8` before the broker the client that dials 0-9 dials 0-8 instead: which of the two it
is stands in the file that it is told to read. With `--seconds` a test that takes longer is left:
the old client waits for some answers as long as it lives.

Prints what became of each test, as JSON: "passed", "skipped", or the last line of what went wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import threading
import unittest
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

_ANSWER_SECONDS = 60.0


class Config:
    """What the tests want to know.

    Args:
        broker: as Qpid writes addresses: `user/password@host:port`.
    """

    def __init__(self, broker: str) -> None:
        self.broker = importlib.import_module("qpid.util").URL(broker)
        self.defines: dict[str, str] = {}


def be_patient() -> None:
    """Give up a message that a test waits for only when the broker has answered since.

    Qpid's tests wait a second for what comes and for what must not come. What a broker that stood
    still has to send comes before the answer to a question of the same session.
    """
    queue, session = (importlib.import_module(f"qpid.{name}") for name in ("queue", "session"))

    def get(self: Any, block: bool = True, timeout: float | None = None) -> Any:
        try:
            return queue.Queue.get(self, block, timeout)
        except queue.Empty:
            with suppress(Exception):
                self.session.execution_sync(sync=True)
                self.session.sync(_ANSWER_SECONDS)
            return queue.Queue.get(self, False)

    session.Incoming.get = get


def adapted(case: Any, name: str) -> unittest.TestCase:
    """A test of the newer interface, which is none of unittest's."""

    def skipping(step: Callable[[], object]) -> Callable[[], None]:
        def do() -> None:
            try:
                step()
            except importlib.import_module("qpid.harness").Skipped as skipped:
                raise unittest.SkipTest(str(skipped)) from None

        return do

    method = skipping(getattr(case, name))
    return unittest.FunctionTestCase(
        method, setUp=skipping(case.setup), tearDown=skipping(case.teardown)
    )


def run(module: ModuleType, config: Config, seconds: float) -> dict[str, str]:
    """What became of each test of a module."""
    outcomes = {}
    for kind in vars(module).values():
        if not isinstance(kind, type) or kind.__module__ != module.__name__:
            continue
        for name in [each for each in dir(kind) if each.startswith("test")]:
            case: Any = kind(name)
            case.configure(config)
            result = unittest.TestResult()
            if not isinstance(case, unittest.TestCase):
                case = adapted(case, name)
            thread = threading.Thread(target=case.run, args=(result,), daemon=True)
            thread.start()
            thread.join(seconds)
            outcomes[f"{kind.__name__}.{name}"] = _outcome(result, late=thread.is_alive())
    return outcomes


def _outcome(result: unittest.TestResult, *, late: bool) -> str:
    bad = [*result.errors, *result.failures]
    if bad:
        return bad[0][1].strip().splitlines()[-1]
    if late:
        return "took too long"
    return "skipped" if result.skipped else "passed"


def main(arguments: list[str]) -> None:
    """Run modules, and print what they came to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--amqp", choices=("0-8", "0-9"), default="0-9")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("broker")
    parser.add_argument("modules", nargs="+")
    asked = parser.parse_args(arguments)
    settings: Any = importlib.import_module("qpid.specs_config")
    settings.amqp_spec_0_9 = getattr(settings, f"amqp_spec_{asked.amqp.replace('-', '_')}")
    be_patient()
    found: dict[str, str] = {}
    for each in asked.modules:
        found |= run(importlib.import_module(each), Config(asked.broker), asked.seconds)
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    # What was left may hold the process.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
