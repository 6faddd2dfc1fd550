"""A real broker in its own process, for tests that need one: `harebell serve` on a free port."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harebell.testing.running import DidNotStart, RunningBroker, environment

__all__ = ["DidNotStart", "RunningBroker", "command", "environment", "running_broker"]


def command() -> str:
    """The installed command `harebell`, beside the Python that runs the tests.

    Raises:
        FileNotFoundError: the package is not installed there.
    """
    path = Path(sys.executable).with_name("harebell")
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: install the package with `make test`")
    return str(path)


@contextmanager
def running_broker(*flags: str, env: Mapping[str, str] | None = None) -> Iterator[RunningBroker]:
    """A broker for the length of a block; stopped at the end if it is still there."""
    with RunningBroker(*flags, env=env) as broker:
        yield broker
