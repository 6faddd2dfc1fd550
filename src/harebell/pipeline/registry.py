"""The pipelines of this machine and their states: a directory with a file for each.

A running pipeline writes its state there (`harebell pipeline list`, `status`, `stop` read it), and
holds an exclusive lock. The lock shows others that it is alive: process ids are reused, while the
locks of a dead process are released. A program that looks for the lock tries a shared one, so that
several may look at a time.

    <directory>/<name>.json    its state        <directory>/<name>.lock    locked while it runs

The state is one object of JSON with the fields of `PipelineState`.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harebell.pipeline.errors import PipelineError

DIRECTORY_VARIABLE = "HAREBELL_PIPELINES"
RUNNING = ("starting", "running", "stopping")
"""The states of a pipeline whose process is alive."""
_POLL_SECONDS = 0.01


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
            PipelineError: a pipeline of this name is running, or the registry cannot be used.
        """
        with self._usable():
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        while not _lock(self._descriptor, fcntl.LOCK_EX):
            if not _lock(self._descriptor, fcntl.LOCK_SH):
                os.close(self._descriptor)
                raise PipelineError(
                    f"a pipeline named {self._file.stem} runs already: stop it with "
                    f"`harebell pipeline stop {self._file.stem}`, or give this one another name"
                )
            # Only shared locks are held: `alive` holds one for a moment in some program. The own
            # ends before the wait: programs that start would wait for those of each other for ever.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            time.sleep(_POLL_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock; the last state is kept."""
        # The lock's file stays, as another process may have it open and lock it next.
        os.close(self._descriptor)

    def write(self, state: PipelineState) -> None:
        """Write a state, atomically.

        Raises:
            PipelineError: the registry cannot be used.
        """
        # Renamed when it is whole: `list` and `status` of other processes read at any time.
        fresh = self._file.with_suffix(".new")
        with self._usable():
            fresh.write_text(json.dumps(asdict(state)))
            fresh.replace(self._file)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PipelineError(
                f"the states of pipelines cannot be written to {self._file.parent}: "
                f"{error.strerror}; {DIRECTORY_VARIABLE} names another directory"
            ) from None


def states(directory: Path) -> list[PipelineState]:
    """Return all states, by name; one that cannot be read is unknown."""
    states = []
    for file in sorted(directory.glob("*.json")):
        try:
            states.append(_state(file))
        # One damaged file must not hide the other pipelines.
        except PipelineError as error:
            states.append(PipelineState(file.stem, "", 0, "unknown", error=str(error)))
    return states


def state_of(directory: Path, name: str) -> PipelineState:
    """Return the state of one pipeline.

    Raises:
        PipelineError: there is none of that name, or it cannot be read.
    """
    file = directory / f"{name}.json"
    # A name with a slash would lead out of the directory.
    if "/" in name or not file.is_file():
        names = ", ".join(each.name for each in states(directory))
        raise PipelineError(
            f"no pipeline named {name!r} has run here; there are {names}"
            if names
            else f"no pipeline named {name!r} has run here, nor any other"
        )
    return _state(file)


def alive(directory: Path, name: str) -> bool:
    """True if a pipeline is running."""
    with _unlocked(directory / f"{name}.lock") as unlocked:
        return not unlocked


@contextmanager
def _unlocked(lock: Path) -> Iterator[bool]:
    """Yield whether no pipeline holds a lock; if so, none begins to until this ends."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        yield _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    """Lock a file without waiting, instead of the lock held so far; False if another holds it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _state(file: Path) -> PipelineState:
    """Return the state in a file; lost if its pipeline died while it ran."""
    # Read while the lock is held: a pipeline that writes its end, and ends, between a read and a
    # look at its lock would seem to have died.
    with _unlocked(file.with_suffix(".lock")) as unlocked:
        state = _read(file)
    if unlocked and state.state in RUNNING:
        state.state = "lost"
    return state


def _read(file: Path) -> PipelineState:
    import msgspec

    try:
        # Facts that only a later version knows are left out.
        return msgspec.json.decode(file.read_bytes(), type=PipelineState)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PipelineError(f"{file} is no state of a pipeline: {error}; remove it") from None
    except OSError as error:
        raise PipelineError(f"{file} cannot be read: {error.strerror}") from None
