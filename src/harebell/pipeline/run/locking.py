"""One driver per checkpoint: a lock that the system releases when the process dies.

Spark lets two queries use the same checkpoint and overwrite each other's progress.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from harebell.pipeline.errors import PipelineError

_NAME = "harebell.lock"


class CheckpointLock:
    """Lock the directory of a checkpoint, as a context manager.

    Args:
        checkpoint: the directory; it is created.
        name: of the pipeline, for the error of another process.

    Attributes:
        path: of the file that is locked.
    """

    def __init__(self, checkpoint: Path, name: str) -> None:
        self.path = checkpoint / _NAME
        self._name = name
        self._descriptor = -1

    def __enter__(self) -> CheckpointLock:
        """Lock it.

        Raises:
            PipelineError: another process has locked it, or it is not a writable directory.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Not inherited (O_CLOEXEC): a worker of Spark that outlives this process would hold the
            # lock.
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise PipelineError(
                f"the checkpoint {self.path.parent} cannot be used: {error.strerror}"
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 500).decode(errors="replace").strip()
            os.close(descriptor)
            raise PipelineError(
                f"the checkpoint {self.path.parent} is in use by {holder or 'another pipeline'}: "
                "stop that one, or give this pipeline a checkpoint of its own"
            ) from None
        # After the lock: a process that is refused must not remove the holder's name.
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"pipeline {self._name}, process {os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        # The file stays. Another process may have it open and be about to lock it; a third would
        # then lock a new file of this name, and both would run.
        os.close(self._descriptor)
        self._descriptor = -1
