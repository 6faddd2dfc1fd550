"""A broker that dies and comes back on the same data directory, and the faults that are planted."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.running import RunningBroker


@contextmanager
def life(
    data_dir: Path,
    *flags: str,
    env: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[RunningBroker]:
    """A broker for the length of a block; what is left of it at the end is killed.

    Raises:
        DidNotStart: it ended before it was ready.
    """
    broker = RunningBroker("--data-dir", str(data_dir), *flags, env=env, prefix=prefix)
    try:
        yield broker
    finally:
        kill(broker)
        broker.remove()


def kill(broker: RunningBroker) -> int:
    """kill -9, and wait for the end; returns the exit code."""
    if broker.process.poll() is None:
        # It may end by itself between the look and the shot.
        with suppress(ProcessLookupError):
            os.kill(broker.pid, signal.SIGKILL)
    return broker.process.wait()


def segments(data_dir: Path) -> list[Path]:
    """The files of all logs, the fullest first."""
    found = [path for path in (data_dir / "queues").rglob("*.seg") if path.stat().st_size]
    return sorted(found, key=lambda path: path.stat().st_size, reverse=True)


def snapshot(data_dir: Path, copy: Path) -> None:
    """Keep what a data directory holds now."""
    shutil.copytree(data_dir, copy, ignore=shutil.ignore_patterns("control.sock", "LOCK"))


def forget(data_dir: Path, copy: Path) -> None:
    """Plant a loss: what was written since the snapshot is gone."""
    shutil.rmtree(data_dir)
    shutil.copytree(copy, data_dir)
