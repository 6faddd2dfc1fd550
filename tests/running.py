"""A real broker in its own process, for tests that need one: `harebell serve` on a free port.

With `HAREBELL_TEST_STORAGE=postgresql://...` the brokers of all tests keep what they have in that
database, each in a schema of its own: see `tests/postgresql/over.py`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from harebell.client.blocking import connect
from harebell.client.errors import AMQPError
from harebell.testing.running import DidNotStart, environment
from harebell.testing.running import RunningBroker as Running

__all__ = [
    "DidNotStart",
    "RunningBroker",
    "asked",
    "command",
    "environment",
    "running_broker",
    "set_watermark",
    "storage",
]

STORAGE = "HAREBELL_TEST_STORAGE"


class RunningBroker(Running):
    """A started broker, over the storage that the tests run over."""

    def __init__(
        self,
        *flags: str,
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        **settings: object,
    ) -> None:
        super().__init__(
            *flags, env={**storage(_data_dir(flags)), **(env or {})}, prefix=prefix, **settings
        )


def storage(data_dir: str) -> dict[str, str]:
    """Variables for a broker, if the tests run over a storage that is no directory.

    Args:
        data_dir: a broker that starts there again finds what it had; "" for one of its own.
    """
    url = os.environ.get(STORAGE)
    if not url:
        return {}
    name = hashlib.sha256((data_dir or uuid.uuid4().hex).encode()).hexdigest()[:16]
    return {"HAREBELL_STORAGE": url, "HAREBELL_STORAGE_SCHEMA": f"test_{name}"}


def _data_dir(flags: Sequence[str]) -> str:
    for at, given in enumerate(flags):
        name, equals, value = given.partition("=")
        if name == "--data-dir":
            return value if equals else flags[at + 1]
    return ""


def command() -> str:
    """The installed command `harebell`, beside the Python that runs the tests.

    Raises:
        FileNotFoundError: the package is not installed there.
    """
    path = Path(sys.executable).with_name("harebell")
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: install the package with `make test`")
    return str(path)


def asked(broker: Running, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command `harebell` with the data directory of a broker."""
    return subprocess.run(
        [command(), *words, "--data-dir", str(broker.data_dir)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
        check=False,
    )


def opens(url: str) -> bool:
    """Whether a client can connect."""
    try:
        with connect(url):
            return True
    except (AMQPError, OSError):
        return False


def set_watermark(broker: Running, value: object) -> None:
    """Set `memory_high_watermark` of a broker: 0 blocks its publishers."""
    done = asked(broker, "config", "set", "memory_high_watermark", str(value))
    if done.returncode:
        raise AssertionError(done.stderr)


@contextmanager
def running_broker(*flags: str, env: Mapping[str, str] | None = None) -> Iterator[RunningBroker]:
    """A broker for the length of a block; stopped at the end if it is still there."""
    with RunningBroker(*flags, env=env) as broker:
        yield broker
