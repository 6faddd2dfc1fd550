"""The pipelines of this machine and their states: a directory with a file for each.

A running pipeline writes its state there (`harebell pipeline list`, `status`, `stop` read it), and
holds a lock. The lock shows others that it is alive: process ids are reused, while the locks of a
dead process are released.

    <directory>/<name>.json    its state        <directory>/<name>.lock    held while it runs
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harebell.base.deprecation import deprecated_names
from harebell.pipeline.errors import PipelineError

DIRECTORY_VARIABLE = "HAREBELL_PIPELINES"
RUNNING = ("starting", "running", "stopping")
"""The states of a pipeline whose process is alive."""

__getattr__ = deprecated_names(
    __name__,
    {
        "State": "harebell.pipeline.registry.PipelineState",
        "Entry": "harebell.pipeline.registry.PipelineEntry",
    },
)


@dataclass
class PipelineState:
    """The state of a pipeline.

    Args:
        name: of the pipeline.
        file: the path of its description; "" for a pipeline that is a command.
        pid: its process id.
        state: starting, running, stopping, ended, failed; lost when its process died; unknown when
            its file cannot be read.
        started: seconds since 1970.
        updated: time of this state, in seconds since 1970.
        batch: number of the last micro-batch; -1 before the first.
        rows: rows read since it started.
        rate: rows read per second, of the last micro-batch.
        batch_ms: duration of the last micro-batch, in milliseconds.
        batches: micro-batches since it started.
        batch_seconds: duration of all micro-batches together, in seconds.
        lag: unprocessed messages, by queue; without queues whose lag is unknown.
        written: rows written since it started, by sink.
        bad: unreadable rows, since it started.
        error: why it failed.
        unreached: whether it failed because the broker was unreachable or refused the login.
        batch_rows: rows of the last micro-batch.
    """

    name: str
    file: str
    pid: int
    state: str = "starting"
    started: float = 0.0
    updated: float = 0.0
    batch: int = -1
    rows: int = 0
    rate: float = 0.0
    batch_ms: int = 0
    batches: int = 0
    batch_seconds: float = 0.0
    lag: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    bad: int = 0
    error: str = ""
    unreached: bool = False
    batch_rows: int = 0


def default_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return the default directory of states."""
    environment = os.environ if environment is None else environment
    if environment.get(DIRECTORY_VARIABLE):
        return Path(environment[DIRECTORY_VARIABLE])
    base = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "harebell" / "pipelines"


class PipelineEntry:
    """The entry of a pipeline in the registry: a context manager that holds its lock.

    Args:
        directory: the registry.
        name: of the pipeline.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._file = directory / f"{name}.json"
        self._lock = directory / f"{name}.lock"
        self._descriptor = -1

    def __enter__(self) -> PipelineEntry:
        """Lock the entry.

        Raises:
            PipelineError: a pipeline of this name is running.
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise PipelineError(
                f"a pipeline named {self._file.stem} runs already: stop it with "
                f"`harebell pipeline stop {self._file.stem}`, or give this one another name"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock; the last state is kept."""
        os.close(self._descriptor)

    def write(self, state: PipelineState) -> None:
        """Write a state, atomically."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(state)))
        fresh.replace(self._file)


def states(directory: Path) -> list[PipelineState]:
    """Return all states, by name; one that cannot be read is unknown."""
    found = []
    for file in sorted(directory.glob("*.json")):
        try:
            found.append(_state(file))
        except PipelineError as error:
            found.append(PipelineState(file.stem, "", 0, "unknown", error=str(error)))
    return found


def state_of(directory: Path, name: str) -> PipelineState:
    """Return the state of one pipeline.

    Raises:
        PipelineError: there is none of that name, or it cannot be read.
    """
    file = directory / f"{name}.json"
    if "/" in name or not file.is_file():
        known = ", ".join(each.name for each in states(directory))
        raise PipelineError(
            f"no pipeline named {name!r} has run here; there are {known}"
            if known
            else f"no pipeline named {name!r} has run here, nor any other"
        )
    return _state(file)


def alive(directory: Path, name: str) -> bool:
    """True if a pipeline is running."""
    try:
        descriptor = os.open(directory / f"{name}.lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _state(file: Path) -> PipelineState:
    import msgspec

    try:
        # Facts that only a later version knows are left out.
        state = msgspec.json.decode(file.read_bytes(), type=PipelineState)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PipelineError(f"{file} is no state of a pipeline: {error}; remove it") from None
    except OSError as error:
        raise PipelineError(f"{file} cannot be read: {error.strerror}") from None
    if state.state in RUNNING and not alive(file.parent, state.name):
        state.state = "lost"
    return state
